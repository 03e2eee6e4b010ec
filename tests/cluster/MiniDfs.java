import java.io.*;
import java.nio.file.*;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/** One name node, two data nodes, on loopback; writes its addresses into a file and lives until its stdin closes. */
public class MiniDfs {
    public static void main(String[] arguments) throws Exception {
        Configuration conf = new Configuration();
        conf.set("dfs.permissions.enabled", "false");
        conf.setInt("dfs.replication", 1);
        File base = new File(arguments[0]);
        MiniDFSCluster cluster = new MiniDFSCluster.Builder(conf, base).numDataNodes(2).build();
        cluster.waitActive();
        String addresses = "hdfs://127.0.0.1:" + cluster.getNameNodePort() + " webhdfs://127.0.0.1:" + cluster.getNameNode().getHttpAddress().getPort();
        Files.writeString(Path.of(arguments[1] + ".partial"), addresses);
        Files.move(Path.of(arguments[1] + ".partial"), Path.of(arguments[1]));
        while (System.in.read() >= 0) { }
        cluster.shutdown();
        System.exit(0);
    }
}
