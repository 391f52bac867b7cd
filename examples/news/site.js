// Shows posts as they come, newest news first, and sends what is written. It leaves doubles out nowhere: there are none.

const kind = document.body.dataset.kind;
const posts = document.getElementById("posts");
const comments = new Map(); // id of news -> its list
const early = new Map(); // comments whose news has not come yet

function made(name, className, ...parts) {
  const element = document.createElement(name);
  element.className = className;
  element.append(...parts);
  return element;
}

function addNews(post) {
  const list = made("ul", "comments");
  const article = made("article", "panel fresh", made("div", "post", made("span", "author", post.author), made("p", "", post.text)), list);
  article.dataset.id = post.id;
  comments.set(post.id, list);
  const reply = document.getElementById("reply");
  if (reply) {
    article.append(reply.content.cloneNode(true));
    article.querySelector("form").addEventListener("submit", (event) => submit(event, post.id));
  }
  posts.prepend(article);
  document.getElementById("empty").hidden = true;
  for (const each of early.get(post.id) ?? []) addComment(each);
  early.delete(post.id);
}

function addComment(post) {
  const list = comments.get(post.about);
  if (list) list.append(made("li", "fresh", made("span", "author", post.author), post.text));
  else early.set(post.about, [...(early.get(post.about) ?? []), post]);
}

function tell(state, text) {
  document.querySelector(".health .dot").className = `dot ${state}`;
  document.getElementById("state").textContent = text;
}

const events = new EventSource("/events"); // connects again by itself, and says which post it had last
events.onopen = () => tell("good", "live");
events.onerror = () => tell("warn", "reconnecting");
events.onmessage = ({ data }) => {
  const post = JSON.parse(data);
  if (post.kind === "news") addNews(post);
  else addComment(post);
};

// The id is made once: however often the request is repeated, it is one post.
async function send(post, status) {
  for (;;) {
    try {
      const answer = await fetch("/posts", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(post) });
      if (answer.ok) return "";
      if (answer.status < 500) return (await answer.json()).why;
    } catch {
      // The service is away for a moment.
    }
    status.textContent = "still sending …";
    await new Promise((done) => setTimeout(done, 500));
  }
}

async function submit(event, about) {
  event.preventDefault();
  const form = event.target;
  const [text, author] = [form.elements.text, document.querySelector("[name=author]")];
  const [button, status] = [form.querySelector("button"), form.querySelector("[role=status]")];
  const post = { id: `${Date.now().toString(36)}-${Math.random().toString(36).slice(2)}`, kind, author: author.value || "Anonymous", text: text.value, about };
  button.disabled = true;
  status.textContent = "sending …";
  const why = await send(post, status);
  button.disabled = false;
  status.textContent = why;
  if (!why) text.value = "";
}

document.querySelector("form.panel")?.addEventListener("submit", (event) => submit(event, ""));
