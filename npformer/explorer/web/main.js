// @ts-check
// The start of the page: the session is made, and the views are drawn, now and after each change.
import { byId, say } from "./drawing/page_elements.js";
import { Explorer } from "./state/explorer.js";
import { OverviewView } from "./views/overview_view.js";
import { WriteView } from "./views/write_view.js";
import { StepView } from "./views/step_view.js";
import { AttentionView } from "./views/attention_view.js";
import { CompareView } from "./views/compare_view.js";
import { ChangesView } from "./views/changes_view.js";
import { SlopeView } from "./views/slope_view.js";
import { TrainingView } from "./views/training_view.js";
import { LensView } from "./views/lens_view.js";
import { ModelMap } from "./views/model_map.js";
import { SentenceView } from "./views/sentence_view.js";
import { linkHome } from "./views/site_links.js";
import { VIEWS, addressOf, isAddress, isThere, readAddress } from "./state/address.js";
import { Trail } from "./views/trail.js";
import { listenToKeys } from "./views/keyboard.js";
import { openAddress, prepareLink, tellOpened } from "./views/link_view.js";
import { pageInterface } from "./state/page_interface.js";
import { offerLanguage, t, translatePage } from "./words/text.js";

const VIEW_CLASSES = {
  steps: StepView,
  attention: AttentionView,
  lens: LensView,
  compare: CompareView,
  changes: ChangesView,
  slope: SlopeView,
  training: TrainingView,
};

/** Start the page. */
function startPage() {
  translatePage();
  offerLanguage();
  const explorer = new Explorer(),
    isPasted = Boolean(history.state?.isPasted),
    isNew = !location.hash; // no link to a view
  // in a lesson, the picture and the arithmetic alone
  document.documentElement.classList.toggle("stripped", /[#&]stripped=1/.test(location.hash));
  readAddress(explorer, location.hash);
  linkHome(explorer);
  const overview = new OverviewView(explorer),
    write = new WriteView(explorer);
  const trail = new Trail(explorer);
  const shell = [new SentenceView(explorer), new ModelMap(explorer), trail];
  /** @type {Record<string, {render: () => void}>} */
  const views = { overview: { render: () => [write, overview].forEach((part) => part.render()) } };
  for (const [name, View] of Object.entries(VIEW_CLASSES))
    if (isThere(explorer.session, name)) views[name] = new View(explorer);
  explorer.memory.saveAddress = () => trail.save();
  let shown = isPasted ? "link" : ""; // the view before
  const render = () => {
    document.documentElement.classList.toggle("large", explorer.isLarge);
    byId("large").textContent = explorer.isLarge ? t("Leave the projector view") : t("Projector view");
    for (const name of VIEWS) byId(name).hidden = explorer.view !== name;
    byId("map-box").parentElement.hidden = explorer.view === "overview"; // which is a map itself
    views[explorer.view]?.render();
    for (const part of shell) part.render();
    const { activeElement: active, body } = document,
      isOther = shown && shown !== explorer.view;
    if (isOther && byId("main").getBoundingClientRect().top < 0) byId("main").scrollIntoView();
    if (isOther && (active === body || !active?.checkVisibility())) {
      byId(explorer.view).tabIndex = -1;
      byId(explorer.view).focus({ preventScroll: true }); // tells a screen reader which view opened
    }
    shown = explorer.view;
  };
  explorer.listen(render);
  listenToKeys(explorer, write, overview);
  byId("large").addEventListener("click", () => {
    const present = document.elementFromPoint(innerWidth / 2, 120); // what is in view stays there
    explorer.isLarge = !explorer.isLarge;
    explorer.changed();
    say(explorer.isLarge ? t("Projector view: Escape leaves it.") : "");
    if (scrollY) present?.scrollIntoView();
  });
  const language = byId("language"); // the same view in the other language
  language.addEventListener("click", () => (language.href = `${language.search}#${addressOf(explorer)}`));
  prepareLink(explorer);
  // another address is read by a new page: the trail's has a state, and that of an element gives way to it
  addEventListener("hashchange", () => {
    if (history.state) return;
    if (isAddress(location.hash)) openAddress();
    else trail.save();
  });
  addEventListener("resize", render);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", render);
  // on a small screen, the map stands folded above the view
  byId("map-box").open = !matchMedia("(max-width: 1000px)").matches;
  byId("map-box").addEventListener("toggle", render);
  if (explorer.memory.message) byId("message").textContent = explorer.memory.message;
  /** @type {any} */ (window).npformer = {
    ...pageInterface(explorer, write.writer, overview),
    steps: views.steps,
  };
  document.documentElement.classList.add("ready");
  render();
  if (isNew) overview.welcome();
  if (isPasted && !explorer.memory.message) tellOpened();
}

byId("needs-browser").remove();
try {
  startPage();
} catch (error) {
  byId("message").textContent = t("The page cannot be shown in this browser: {message}.", {
    message: /** @type {Error} */ (error).message,
  });
  throw error;
}
