/** Runs keytool once for each line of standard input, whose words are separated by tabs. */
public final class Keytool {
    public static void main(String[] none) throws Exception {
        var lines = new java.io.BufferedReader(new java.io.InputStreamReader(System.in));
        for (String line; (line = lines.readLine()) != null; ) {
            sun.security.tools.keytool.Main.main(line.split("\t"));
        }
    }
}
