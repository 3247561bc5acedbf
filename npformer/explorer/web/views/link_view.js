// @ts-check
// The link to the present view: it is copied, shown, and opened in a new tab; and a received link is opened.
import { byId, element, openDialog, say } from "../drawing/page_elements.js";
import { addressOf, isAddress } from "../state/address.js";
import { MOST_LINKED } from "../state/training_log.js";
import { t } from "../words/text.js";

const isWeb = location.protocol.startsWith("http");

/** Make the buttons and the form of the dialog work. @param {Explorer} explorer */
export function prepareLink(explorer) {
  const link = byId("link-text");
  link.addEventListener("focus", () => link.select());
  byId("copy-link").addEventListener("click", () => showLink(explorer));
  byId("link-copy").addEventListener("click", () => copy());
  byId("link-share").hidden = !isWeb || !("share" in navigator);
  byId("link-share").addEventListener("click", () =>
    navigator.share({ title: document.title, url: link.value }).catch(() => {}),
  );
  byId("received").hidden = isWeb;
  byId("received").addEventListener("submit", (/** @type {Event} */ event) => {
    event.preventDefault();
    openReceived();
  });
}

/** Open the dialog with the link of the view, and copy the link. @param {Explorer} explorer */
async function showLink(explorer) {
  if (location.protocol === "about:") {
    const told = t(
      "A page in a notebook has no address. Write it to a file with save(FILE), and open that for a link.",
    );
    openDialog(t("Link to this view"), element("p", {}, told));
    return;
  }
  const href = `${location.href.split("#")[0]}#${addressOf(explorer)}`;
  byId("link-text").value = byId("link-open").href = href;
  byId("link-kept").replaceChildren(...keptTexts(explorer).map((text) => element("p", {}, text)));
  byId("link-dialog").showModal();
  await copy();
}

/** Copy the link, and say whether that was possible. */
async function copy() {
  let isCopied = true;
  try {
    await navigator.clipboard.writeText(byId("link-text").value);
  } catch {
    byId("link-text").select();
    isCopied = document.execCommand("copy"); // where the newer way is not allowed
  }
  byId("link-told").textContent = isCopied
    ? t("The link was copied. Paste it where you want to send it.")
    : t("This browser does not let the page copy. Select the link and copy it yourself.");
}

/**
 * Say what the link keeps, and how it reaches somebody else.
 * @param {Explorer} explorer
 */
function keptTexts({ session }) {
  const file = fileName();
  return [
    t(
      "The link opens this page as you see it: with the sentence, your changes and training steps, and " +
        "what the tab “{tab}” shows.",
      { tab: document.querySelector("#views [aria-pressed=true]")?.textContent ?? "" },
    ),
    session.log.length > MOST_LINKED
      ? t("It leaves out your {count} training steps: a link repeats at most {most}.", {
          count: session.log.length,
          most: MOST_LINKED,
        })
      : "",
    isWeb
      ? t("The page stands at a web address: whoever opens the link sees this view.")
      : t(
          "It points to the file “{file}” on this computer. To show the view to another person, send the " +
            "file together with the link. That person opens the file, presses “Link to this view” and " +
            "pastes the link into the field below.",
          { file },
        ),
  ].filter(Boolean);
}

/** Return the name of the page's file. A typed address may hold a "%" of its own: it stays as it is. */
function fileName() {
  const name = location.pathname.split("/").pop() ?? "";
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

/** Show the view of another address: a new page reads it, and says so. */
export function openAddress() {
  history.replaceState({ isPasted: true }, ""); // a state outlives the page
  location.reload();
}

/** Say what a pasted link has opened: the view, the sentence and the changes. */
export function tellOpened() {
  const texts = ["#views [aria-pressed=true]", "#source-text", "#changed"]
    .map((one) => document.querySelector(one)?.textContent?.replace(/\.$/, ""))
    .filter(Boolean);
  say(t("The link is open: {texts}.", { texts: texts.join(t(", ")) }));
}

/**
 * Open the pasted link, which was made on another computer: its file has another path there, and what follows
 * "#" is the view.
 */
function openReceived() {
  const hash = byId("received-link").value.trim().replace(/^[^#]*/, "");
  if (isAddress(hash)) {
    byId("link-dialog").close();
    location.hash = hash;
    openAddress();
    return;
  }
  const text = t("This is not a link to a view: paste the whole link, with “#” and what follows it.");
  byId("received-told").textContent = text;
}
