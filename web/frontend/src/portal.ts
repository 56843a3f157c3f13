// The portal's script. It adds htmx and other features to pages. Every form works without it.
import "htmx.org";

import { keepDrafts, restoreDrafts } from "./portal/drafts";
import { followDrawer } from "./portal/drawer";
import {
  onEachPage, preventDoubleSubmit, sendFormsInPlace, showNetworkErrors,
} from "./portal/forms";
import {
  closeMenus, copyOnClick, fillOnClick, keepChosenTable, labelDates, reloadSentForms, removeSecrets, showFlashOnce,
} from "./portal/page";
import { dragTables } from "./portal/table_order";
import { followBoard } from "./portal/tonight";
import { keepUnsavedInput } from "./portal/unsaved_input";
import { showWaiting } from "./portal/waiting";

closeMenus();
copyOnClick();
fillOnClick();
onEachPage(dragTables);
followBoard();
keepUnsavedInput();
keepDrafts();
followDrawer();
removeSecrets();
keepChosenTable();
sendFormsInPlace();
reloadSentForms();
labelDates();
showFlashOnce();
showNetworkErrors();
preventDoubleSubmit();
onEachPage(restoreDrafts);
showWaiting();
