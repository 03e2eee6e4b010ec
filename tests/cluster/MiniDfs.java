import java.io.*;
import java.nio.file.*;
import java.security.PrivilegedExceptionAction;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.hadoop.minikdc.MiniKdc;
import org.apache.hadoop.security.Credentials;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.kerby.kerberos.kerb.client.KrbClient;

/**
 * One name node, two data nodes, on loopback; writes its addresses into a file and lives until its stdin closes.
 *
 * <p>With a directory as third argument it wants Kerberos. The directory gets what a user named auditor needs: core-site.xml, krb5.conf,
 * auditor.keytab, auditor.ccache, which is what kinit writes for that keytab, and auditor.tokens, which is what YARN gives to a container.
 */
public class MiniDfs {
    public static void main(String[] arguments) throws Exception {
        Configuration conf = new Configuration();
        conf.setInt("dfs.replication", 1);
        File directory = arguments.length > 2 ? new File(arguments[2]) : null;
        conf.setBoolean("dfs.permissions.enabled", directory != null);
        if (directory != null) {
            secure(conf, directory);
        }
        File base = new File(arguments[0]);
        MiniDFSCluster cluster = new MiniDFSCluster.Builder(conf, base).numDataNodes(2).build();
        cluster.waitActive();
        if (directory != null) {
            FileSystem files = cluster.getFileSystem();
            files.mkdirs(new org.apache.hadoop.fs.Path("/user/auditor"));
            files.setOwner(new org.apache.hadoop.fs.Path("/user/auditor"), "auditor", "auditor");
            files.mkdirs(new org.apache.hadoop.fs.Path("/private"), new FsPermission((short) 0700));
            writeTokens(cluster, conf, directory);
        }
        String addresses = "hdfs://127.0.0.1:" + cluster.getNameNodePort() + " webhdfs://127.0.0.1:" + cluster.getNameNode().getHttpAddress().getPort();
        Files.writeString(Path.of(arguments[1] + ".partial"), addresses);
        Files.move(Path.of(arguments[1] + ".partial"), Path.of(arguments[1]));
        while (System.in.read() >= 0) { }
        cluster.shutdown();
        System.exit(0);
    }

    private static void secure(Configuration conf, File directory) throws Exception {
        MiniKdc kdc = new MiniKdc(MiniKdc.createConf(), directory);
        kdc.start();
        Files.copy(kdc.getKrb5conf().toPath(), new File(directory, "krb5.conf").toPath());
        File servers = new File(directory, "servers.keytab"), auditor = new File(directory, "auditor.keytab");
        kdc.createPrincipal(servers, "hdfs/localhost", "HTTP/localhost");
        kdc.createPrincipal(auditor, "auditor");
        KrbClient client = new KrbClient(directory);
        client.init();
        client.storeTicket(client.requestTgt("auditor@" + kdc.getRealm(), auditor), new File(directory, "auditor.ccache"));
        conf.set("hadoop.security.authentication", "kerberos");
        for (String node : new String[] {"namenode", "datanode"}) {
            conf.set("dfs." + node + ".kerberos.principal", "hdfs/localhost@" + kdc.getRealm());
            conf.set("dfs." + node + ".keytab.file", servers.getPath());
        }
        conf.set("dfs.web.authentication.kerberos.principal", "HTTP/localhost@" + kdc.getRealm());
        conf.set("dfs.web.authentication.kerberos.keytab", servers.getPath());
        conf.setBoolean("dfs.block.access.token.enable", true);
        conf.set("dfs.data.transfer.protection", "privacy");
        conf.setBoolean("ignore.secure.ports.for.testing", true);
        Configuration ofClients = new Configuration(false);
        for (String name : new String[] {"hadoop.security.authentication", "dfs.data.transfer.protection", "dfs.namenode.kerberos.principal"}) {
            ofClients.set(name, conf.get(name));
        }
        try (OutputStream out = new FileOutputStream(new File(directory, "core-site.xml"))) {
            ofClients.writeXml(out);
        }
        UserGroupInformation.setConfiguration(conf);
    }

    private static void writeTokens(MiniDFSCluster cluster, Configuration conf, File directory) throws Exception {
        String keytab = new File(directory, "auditor.keytab").getPath();
        PrivilegedExceptionAction<Void> write = () -> {
            Credentials tokens = new Credentials();
            cluster.getFileSystem().addDelegationTokens("auditor", tokens);
            tokens.writeTokenStorageFile(new org.apache.hadoop.fs.Path(new File(directory, "auditor.tokens").toURI()), conf);
            return null;
        };
        UserGroupInformation.loginUserFromKeytabAndReturnUGI("auditor", keytab).doAs(write);
    }
}
