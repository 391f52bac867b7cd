// The one MQTT client of the page. It lives on while other views are open, and ends with the sign-in.
import { MqttSession } from "./mqtt_session.js";
import { signedIn, token } from "./session.js";

let loading = null;

// A promise of the session; the library is loaded with the first one.
export function pageClient() {
  loading ??= import("../vendor/mqtt.js").then(({ default: mqtt }) => {
    const session = new MqttSession(mqtt.connect);
    signedIn.watch((is) => is || (session.disconnect(), session.clear()));
    return session;
  });
  loading.catch(() => { loading = null; });
  return loading;
}

const clientId = `page-${Array.from(crypto.getRandomValues(new Uint8Array(6)), (byte) => byte.toString(16).padStart(2, "0")).join("")}`;

export function connectPage(session, version = 5) {
  const address = new URL("mqtt", document.baseURI);
  address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
  address.hash = "";
  session.connect({ address: address.href, secret: token(), version, clientId });
}
