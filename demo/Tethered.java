package quotaflow;

import java.io.IOException;
import java.util.Arrays;

/**
 * Runs another main class for as long as standard input stays open.
 *
 * <p>The process that started us holds the other end of that pipe. However it dies, kill -9
 * included, the system closes the pipe and this JVM halts: no broker outlives its demo.
 */
public final class Tethered {
    private Tethered() { }

    /** The first argument names the main class, the rest are its own. */
    public static void main(String[] args) throws ReflectiveOperationException {
        Thread tether = new Thread(Tethered::haltAtEndOfInput, "tether");
        tether.setDaemon(true);
        tether.start();
        String[] rest = Arrays.copyOfRange(args, 1, args.length);
        Class.forName(args[0]).getMethod("main", String[].class).invoke(null, (Object) rest);
    }

    private static void haltAtEndOfInput() {
        try {
            while (System.in.read() >= 0) {
                continue;
            }
        } catch (IOException closed) {
            System.err.println("standard input failed: " + closed);
        }
        Runtime.getRuntime().halt(137);
    }
}
