import java.util.*;
import javax.management.*;
import javax.management.remote.*;

/** Prints what a broker has counted, one line for each API and version: {@code RequestCounts PORT}. */
public class RequestCounts {
    public static void main(String[] arguments) throws Exception {
        String address = "service:jmx:rmi:///jndi/rmi://127.0.0.1:" + arguments[0] + "/jmxrmi";
        try (JMXConnector connector = JMXConnectorFactory.connect(new JMXServiceURL(address))) {
            MBeanServerConnection broker = connector.getMBeanServerConnection();
            ObjectName counted = new ObjectName("kafka.network:type=RequestMetrics,name=RequestsPerSec,*");
            for (ObjectName name : broker.queryNames(counted, null))
                System.out.println(name.getKeyProperty("request") + " " + name.getKeyProperty("version") + " "
                        + broker.getAttribute(name, "Count"));
        }
    }
}
