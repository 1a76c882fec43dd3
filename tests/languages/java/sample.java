package words;

import java.util.Map;

/** All words. */
@Deprecated
public class Words<T> extends Base implements Finder {
    private int total = 1;

    public Words(String text) {
        super(text);
    }

    @Override
    public Map<String, Integer> count(
            String text,
            int limit) throws Failure {
        Runnable walk = new Runnable() {
            public void run() {
                total += 1;
            }
        };
        String help = """
int notOne() {
}
""";
        if (limit > 0) {
            return Map.of();
        }
        text.chars().forEach(c -> {
            walk.run();
        });
        return null;
    }

    // Nothing.
    static int none() { return 0; }

    enum Level {
        LOW, HIGH;

        int value() {
            return 1;
        }
    }

    interface Other {
        void close();
    }
}
