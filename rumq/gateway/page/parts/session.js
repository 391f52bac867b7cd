// Who is signed in: the token, where it is kept, and what its roles permit.
import { store } from "./store.js";

const KEY = "rumq.token";

// me: null until the gateway has said who the token is: {name, roles, user, reads: all, some or none of the topics}
export const me = store(null);
// why: the sentence above the sign-in form; null: nobody was signed out against their will
export const why = store(null);

function read(storage) {
  try { return storage().getItem(KEY); } catch { return null; }
}

let secret = read(() => sessionStorage) || read(() => localStorage);
export const signedIn = store(Boolean(secret));

export const token = () => secret;

// keep: also after the browser is closed
export function signIn(given, keep) {
  secret = given;
  try { sessionStorage.setItem(KEY, given); } catch { /* kept in memory only */ }
  try { if (keep) localStorage.setItem(KEY, given); } catch { /* likewise */ }
  why.set(null);
  signedIn.set(true);
}

export function signOut(sentence = null) {
  secret = null;
  for (const storage of [() => sessionStorage, () => localStorage]) {
    try { storage().removeItem(KEY); } catch { /* there was none */ }
  }
  me.set(null);
  why.set(sentence);
  signedIn.set(false);
}

// Whether events and traces, which tell of everybody's topics, are answered to this token.
export function mayFollow() {
  const known = me.get();
  return !known || !known.reads || known.reads === "all" || may("administer");
}

// role: "read", "publish", "consume" or "administer"; unknown roles (an older gateway) hide nothing, the gateway refuses
export function may(role) {
  const known = me.get();
  return !known || !known.roles || known.roles.includes(role);
}
