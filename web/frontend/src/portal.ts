// The portal's script. It adds htmx and other features to pages. Every form works without it.
import "htmx.org";

import { followDrawer } from "./portal/drawer";
import { preventDoubleSubmit, showErrorsInline, showNetworkErrors } from "./portal/forms";
import {
  closeMenus, copyOnClick, keepChosenTable, labelDates, reloadSentForms, removeSecrets,
  showFlashOnce, waitForRestart,
} from "./portal/page";
import { dragTables } from "./portal/table_order";
import { followBoard } from "./portal/tonight";
import { keepUnsavedInput, restoreOtherForms } from "./portal/unsaved_input";
import { showWaiting } from "./portal/waiting";

closeMenus();
copyOnClick();
dragTables();
followBoard();
keepUnsavedInput();
restoreOtherForms();
followDrawer();
removeSecrets();
keepChosenTable();
waitForRestart();
showErrorsInline();
reloadSentForms();
labelDates();
showFlashOnce();
showNetworkErrors();
preventDoubleSubmit();
showWaiting();
