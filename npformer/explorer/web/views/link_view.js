// @ts-check
// The link to the present view: it is copied, shown, and opened in a new tab; and a received link is opened.
import { button, byId, element, openDialog, textInput, titled } from "../drawing/page_elements.js";
import { isAddress, linkOf } from "../state/address.js";
import { MOST_LINKED } from "../state/training_log.js";
import { t } from "../words/text.js";

/** @typedef {import("../state/explorer.js").Explorer} Explorer */

/**
 * Open the dialog with the link of the view, and copy the link.
 * @param {Explorer} explorer
 */
export async function showLink(explorer) {
  const title = t("Link to this view");
  if (location.protocol === "about:") {
    const told = t(
      "A page in a notebook has no address. Write it to a file with save(FILE), and open that for a link.",
    );
    openDialog(title, title, element("p", {}, told));
    return;
  }
  const isWeb = location.protocol.startsWith("http"),
    href = linkOf(explorer),
    told = element("p", { className: "verdict", role: "status" });
  const link = element("textarea", { id: "link-text", value: href, readOnly: true, rows: 4 });
  const newTab = { href, target: "_blank", rel: "noopener", className: "button" };
  link.addEventListener("focus", () => link.select());
  const copied = () => copy(link).then((isCopied) => (told.textContent = outcome(isCopied)));
  openDialog(
    title,
    title,
    element(
      "div",
      { className: "link" },
      told,
      element("label", {}, t("The link"), link),
      element(
        "div",
        { className: "controls" },
        button(t("Copy it again"), copied, { className: "main" }),
        element("a", newTab, t("Open it in a new tab")),
        button(t("Share"), () => navigator.share({ title: document.title, url: href }).catch(() => {}), {
          hidden: !isWeb || !("share" in navigator),
        }),
      ),
      ...keptTexts(explorer).map((textContent) => element("p", { textContent })),
      ...(isWeb ? [] : [received()]),
    ),
  );
  link.scrollTop = 0;
  await copied();
}

/** @param {boolean} isCopied */
function outcome(isCopied) {
  return isCopied
    ? t("The link was copied. Paste it where you want to send it.")
    : t("This browser does not let the page copy. Select the link and copy it yourself.");
}

/**
 * Copy the text of a field, and return whether that was possible.
 * @param {any} field
 */
async function copy(field) {
  try {
    await navigator.clipboard.writeText(field.value);
    return true;
  } catch {
    field.select();
    return document.execCommand("copy"); // where the newer way is not allowed
  }
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
    location.protocol.startsWith("http")
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

/**
 * Make the form that opens a link which was made on another computer: its file has another path there, and
 * what follows "#" is the view.
 */
function received() {
  const field = textInput({ id: "received-link" }),
    told = element("p", { role: "status" });
  const onsubmit = (/** @type {Event} */ event) => {
    event.preventDefault();
    const hash = field.value.trim().replace(/^[^#]*/, "");
    if (!isAddress(hash)) {
      const text = t("This is not a link to a view: paste the whole link, with “#” and what follows it.");
      told.textContent = text;
      return;
    }
    byId("dialog").close();
    location.hash = hash;
  };
  const form = element(
    "form",
    { onsubmit },
    element("label", {}, t("Paste the link"), field),
    element("div", { className: "controls" }, element("button", {}, t("Open this link"))),
    told,
  );
  return titled("div", t("A link that you have received"), form);
}
