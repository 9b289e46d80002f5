package quotaflow;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.security.Provider;
import java.security.Security;
import java.util.HexFormat;
import java.util.Map;
import java.util.StringJoiner;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import javax.security.auth.Subject;
import javax.security.auth.callback.CallbackHandler;
import javax.security.auth.spi.LoginModule;
import javax.security.sasl.SaslException;
import javax.security.sasl.SaslServer;
import javax.security.sasl.SaslServerFactory;
import org.apache.kafka.common.errors.SaslAuthenticationException;

/**
 * The broker's side of AWS_MSK_IAM for one access key: checks host, time and signature of a payload
 * (AWS Signature Version 4), and answers as MSK does. A stand-in: MSK's own code is not public.
 */
public final class MskIamServer implements SaslServer {
    private static final String MECHANISM = "AWS_MSK_IAM";
    private static final ObjectMapper JSON = new ObjectMapper();
    private final Map<String, ?> options;
    private String user;

    MskIamServer(Map<String, ?> options) {
        this.options = options;
    }

    @Override
    public byte[] evaluateResponse(byte[] response) throws SaslException {
        try {
            JsonNode sent = JSON.readTree(response);
            require(sent, "version", "2020_10_22");
            require(sent, "action", "kafka-cluster:Connect");
            // Java's client names the host as its address is looked up.
            String host = sent.path("host").asText();
            require(sent, "host", host.equals("localhost") ? host : "127.0.0.1");
            require(sent, "x-amz-signature", signature(sent));
            user = sent.get("x-amz-credential").asText().split("/")[0];
            return "{\"version\":\"2020_10_22\",\"request-id\":\"00000000-0000-0000-0000-000000000000\"}"
                .getBytes(StandardCharsets.UTF_8);
        } catch (java.io.IOException | GeneralSecurityException error) {
            throw new SaslException("no payload of " + MECHANISM, error);
        }
    }

    private static void require(JsonNode sent, String name, String expected) {
        if (!sent.path(name).asText().equals(expected)) {
            throw new SaslAuthenticationException("wrong " + name);
        }
    }

    private String signature(JsonNode sent) throws GeneralSecurityException {
        String credential = sent.get("x-amz-credential").asText();
        String[] parts = credential.split("/");
        String scope = String.join("/", parts[1], parts[2], parts[3], parts[4]);
        StringJoiner query = new StringJoiner("&");
        query.add("Action=" + encoded(sent.get("action").asText()));
        String[] names = {"Algorithm", "Credential", "Date", "Expires", "Security-Token", "SignedHeaders"};
        for (String name : names) {
            JsonNode value = sent.get("x-amz-" + name.toLowerCase(java.util.Locale.ROOT));
            if (value != null) {
                query.add("X-Amz-" + name + "=" + encoded(value.asText()));
            }
        }
        String request = "GET\n/\n" + query + "\nhost:" + sent.get("host").asText() + "\n\nhost\n"
            + hash("");
        String text = "AWS4-HMAC-SHA256\n" + sent.get("x-amz-date").asText() + "\n" + scope + "\n"
            + hash(request);
        byte[] key = ("AWS4" + options.get("secret")).getBytes(StandardCharsets.UTF_8);
        for (int i = 1; i < parts.length; i++) {
            key = hmac(key, parts[i]);
        }
        return HexFormat.of().formatHex(hmac(key, text));
    }

    private static String encoded(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8).replace("+", "%20").replace("*", "%2A")
            .replace("%7E", "~");
    }

    private static String hash(String text) throws GeneralSecurityException {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes));
    }

    private static byte[] hmac(byte[] key, String text) throws GeneralSecurityException {
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(key, "HmacSHA256"));
        return mac.doFinal(text.getBytes(StandardCharsets.UTF_8));
    }

    @Override
    public String getAuthorizationID() {
        return user;
    }

    @Override
    public String getMechanismName() {
        return MECHANISM;
    }

    @Override
    public boolean isComplete() {
        return user != null;
    }

    @Override
    public byte[] unwrap(byte[] incoming, int offset, int length) {
        throw new IllegalStateException();
    }

    @Override
    public byte[] wrap(byte[] outgoing, int offset, int length) {
        throw new IllegalStateException();
    }

    @Override
    public Object getNegotiatedProperty(String name) {
        return null;
    }

    @Override
    public void dispose() {}

    /** Makes the mechanism known to the broker; its option is the secret of the access key. */
    public static final class Login implements LoginModule {
        static Map<String, ?> options;

        @Override
        public void initialize(
                Subject subject, CallbackHandler handler, Map<String, ?> state, Map<String, ?> given) {
            options = given;
            Security.addProvider(new Mechanisms());
        }

        @Override
        public boolean login() {
            return true;
        }

        @Override
        public boolean commit() {
            return true;
        }

        @Override
        public boolean abort() {
            return true;
        }

        @Override
        public boolean logout() {
            return true;
        }
    }

    /** The provider of the mechanism. */
    public static final class Mechanisms extends Provider {
        private static final long serialVersionUID = 1L;

        @SuppressWarnings("this-escape")
        public Mechanisms() {
            super("quotaflow-msk-iam", "1", "");
            put("SaslServerFactory." + MECHANISM, Factory.class.getName());
        }
    }

    /** Makes servers of the mechanism. */
    public static final class Factory implements SaslServerFactory {
        @Override
        public SaslServer createSaslServer(
                String name, String protocol, String server, Map<String, ?> props, CallbackHandler h) {
            return new MskIamServer(Login.options);
        }

        @Override
        public String[] getMechanismNames(Map<String, ?> props) {
            return new String[] {MECHANISM};
        }
    }
}
