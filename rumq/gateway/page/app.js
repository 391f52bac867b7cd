// The beginning of the page: the sign-in form, or the shell with its views.
import { html, render } from "./parts/dom.js";
import { signedIn } from "./parts/session.js";
import { Shell } from "./parts/shell.js";
import { useStore } from "./parts/store.js";
import { SignIn } from "./views/sign_in.js";

function Page() {
  return useStore(signedIn) ? html`<${Shell}/>` : html`<${SignIn}/>`;
}

const root = document.getElementById("app");
root.textContent = "";
render(html`<${Page}/>`, root);
