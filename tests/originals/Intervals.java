import com.google.api.client.util.ExponentialBackOff;
import java.lang.reflect.Method;
import java.util.Scanner;

/** Prints the delays of ExponentialBackOff, in ms, for the random numbers of each line. */
class Intervals {
    public static void main(String[] arguments) throws Exception {
        Method draw = ExponentialBackOff.class.getDeclaredMethod(
            "getRandomValueFromInterval", double.class, double.class, int.class);
        draw.setAccessible(true);
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            String[] words = lines.nextLine().split(" ");
            ExponentialBackOff.Builder settings = new ExponentialBackOff.Builder();
            settings.setInitialIntervalMillis(Integer.parseInt(words[0]));
            settings.setRandomizationFactor(Double.parseDouble(words[1]));
            settings.setMultiplier(Double.parseDouble(words[2]));
            settings.setMaxIntervalMillis(Integer.parseInt(words[3]));
            ExponentialBackOff backOff = settings.build();
            StringBuilder delays = new StringBuilder();
            for (int i = 4; i < words.length; i++) {
                double random = Double.parseDouble(words[i]);
                int current = backOff.getCurrentIntervalMillis();
                delays.append(draw.invoke(null, backOff.getRandomizationFactor(), random, current));
                delays.append(' ');
                backOff.nextBackOffMillis();
            }
            System.out.println(delays);
        }
    }
}
