import org.apache.kafka.common.protocol.Errors;

/** Prints the code and the name of each error of Kafka's protocol. */
public final class ErrorNames {
    private ErrorNames() { }

    public static void main(final String[] arguments) {
        for (final Errors error : Errors.values()) {
            System.out.println(error.code() + " " + error.name());
        }
    }
}
