package quotaflow;

import com.fasterxml.jackson.databind.node.TextNode;
import java.util.Set;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.IntUnaryOperator;
import java.util.stream.Collectors;

/**
 * Decides by its text alone what becomes of a request line: sent in an envelope, or left out and counted.
 *
 * <p>Kafka's RequestConvertToJson writes the API first and the connection last. A text that a client chose
 * comes between them, and its quotation marks are escaped: so it is never taken for one of the two.
 */
final class RequestLines {
    private static final String COMPLETED = "Completed request:";
    private static final String HEADER = "\"requestHeader\":{\"requestApiKey\":";
    private static final String CLIENT_ID = ",\"clientId\":";
    private static final String CONNECTION = ",\"securityProtocol\":\"";
    private static final String PRINCIPAL = "\",\"principal\":";
    private static final String UNTHROTTLED = "\"throttleTimeMs\":0,";
    /** Before the client id there are numbers alone. */
    private static final int HEADER_BOUND = 200;
    /** One can log in with these bodies: SaslAuthenticate, delegation tokens, SCRAM credentials, Envelope. */
    static final Set<Integer> SECRET = Set.of(36, 38, 39, 40, 41, 51, 58);

    final LongAdder own = new LongAdder();
    final LongAdder secret = new LongAdder();
    final LongAdder filtered = new LongAdder();
    final LongAdder sampled = new LongAdder();
    final LongAdder unreadable = new LongAdder();
    private final RequestLogSettings settings;
    private final int brokerId;
    private final IntUnaryOperator random;
    private final String ownClient;
    private final String ownPrincipal;
    private final Set<String> included;
    private final Set<String> excluded;

    /** `random` gives a number from 0 to n - 1. */
    RequestLines(RequestLogSettings settings, int brokerId, IntUnaryOperator random) {
        this.settings = settings;
        this.brokerId = brokerId;
        this.random = random;
        ownClient = quoted(RequestLogSettings.CLIENT_ID);
        ownPrincipal = quoted(settings.ownPrincipal);
        included = settings.includedPrincipals == null ? null : allQuoted(settings.includedPrincipals);
        excluded = allQuoted(settings.excludedPrincipals);
    }

    /** The envelope of broker/log4j2.yaml, with the weight of a sampled line; null for a line that is left out. */
    String envelope(String message, long timeMs) {
        int header = message.startsWith(COMPLETED) ? message.indexOf(HEADER) : -1;
        int api = header < 0 || header > HEADER_BOUND ? -1 : number(message, header + HEADER.length());
        int connection = message.lastIndexOf(CONNECTION);
        int principal = connection < 0 ? -1 : message.indexOf(PRINCIPAL, connection);
        if (api < 0 || principal < 0) {
            // Whose body this is, is not known: it may be one to log in with.
            unreadable.increment();
        } else if (SECRET.contains(api)) {
            secret.increment();
        } else if (isOwn(message, header, principal + PRINCIPAL.length())) {
            own.increment();
        } else if (!isIncluded(api) || !isIncluded(message, principal + PRINCIPAL.length())) {
            filtered.increment();
        } else {
            int oneOf = oneOf(api, message);
            if (oneOf == 1 || random.applyAsInt(oneOf) == 0) {
                String weight = oneOf == 1 ? "" : ",\"weight\":" + oneOf;
                return "{\"ts\":" + timeMs + ",\"broker\":" + brokerId + weight
                    + ",\"r\":" + message.substring(COMPLETED.length()) + "}";
            }
            sampled.increment();
        }
        return null;
    }

    /** What the topic gets where lines were lost on their way to it. */
    String losses(long lines, long timeMs) {
        return "{\"ts\":" + timeMs + ",\"broker\":" + brokerId + ",\"lost\":" + lines + "}";
    }

    /** A client id alone hides nothing: anybody may use it. */
    private boolean isOwn(String message, int header, int principal) {
        int client = message.indexOf(CLIENT_ID, header);
        return message.startsWith(ownClient, client + CLIENT_ID.length())
            && message.startsWith(ownPrincipal, principal);
    }

    private boolean isIncluded(int api) {
        return !settings.excludedApis.contains(api)
            && (settings.includedApis == null || settings.includedApis.contains(api));
    }

    private boolean isIncluded(String message, int principal) {
        return !startsWithAny(message, principal, excluded)
            && (included == null || startsWithAny(message, principal, included));
    }

    private static boolean startsWithAny(String message, int at, Set<String> texts) {
        for (String text : texts) {
            if (message.startsWith(text, at)) {
                return true;
            }
        }
        return false;
    }

    /** A line that was throttled or names a producer is kept, as quotaflow's ingest does. */
    private int oneOf(int api, String message) {
        int oneOf = settings.oneOf.getOrDefault(api, 1);
        boolean isKept = oneOf == 1
            || !message.startsWith(UNTHROTTLED, message.lastIndexOf("\"throttleTimeMs\":"))
            || message.contains("\"transactionalId\":\"")
            || message.contains("\"producerId\":");
        return isKept ? 1 : oneOf;
    }

    private static int number(String message, int start) {
        int end = start;
        while (end < message.length() && end < start + 5 && Character.isDigit(message.charAt(end))) {
            end++;
        }
        boolean isWhole = end > start && end < message.length() && message.charAt(end) == ',';
        return isWhole ? Integer.parseInt(message, start, end, 10) : -1;
    }

    private static Set<String> allQuoted(Set<String> texts) {
        return texts.stream().map(RequestLines::quoted).collect(Collectors.toSet());
    }

    /** As Kafka writes it into a line: by the same library. */
    private static String quoted(String text) {
        return new TextNode(text).toString();
    }
}
