import java.nio.charset.StandardCharsets;
import java.security.KeyPairGenerator;
import java.security.SecureRandom;
import java.security.Security;
import java.util.Base64;
import javax.crypto.Cipher;
import javax.crypto.KeyGenerator;
import org.bouncycastle.jce.provider.BouncyCastleProvider;

/** Encrypts texts as Aiven's plugin encrypts chunks: the names of the ciphers are those of its documentation and classes. */
public class EncryptedChunks {
    public static void main(String[] texts) throws Exception {
        Security.addProvider(new BouncyCastleProvider());
        var base64 = Base64.getEncoder();
        var pairs = KeyPairGenerator.getInstance("RSA");
        pairs.initialize(2048);
        var pair = pairs.generateKeyPair();
        var keys = KeyGenerator.getInstance("AES");
        keys.init(256);
        var dataKey = keys.generateKey();
        var aad = new byte[32];
        new SecureRandom().nextBytes(aad);
        var wrap = Cipher.getInstance("RSA/NONE/OAEPWithSHA3-512AndMGF1Padding", "BC");
        wrap.init(Cipher.ENCRYPT_MODE, pair.getPublic());
        System.out.println("private " + base64.encodeToString(pair.getPrivate().getEncoded()));
        System.out.println("dataKey key1:" + base64.encodeToString(wrap.doFinal(dataKey.getEncoded())));
        System.out.println("aad " + base64.encodeToString(aad));
        for (String text : texts) {
            var cipher = Cipher.getInstance("AES/GCM/NoPadding");
            cipher.init(Cipher.ENCRYPT_MODE, dataKey);
            cipher.updateAAD(aad);
            var encrypted = cipher.doFinal(text.getBytes(StandardCharsets.UTF_8));
            System.out.println("chunk " + base64.encodeToString(cipher.getIV()) + " " + base64.encodeToString(encrypted) + " " + text);
        }
    }
}
