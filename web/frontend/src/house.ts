// The portal's script: parts of pages over htmx, and what each room adds. Without it every form
// still works; it only saves whole page loads.
import "htmx.org";

import { closeMenusOnEscape } from "./portal/menus";
import { copyOnClick } from "./portal/copying";
import { sayDatesInWords } from "./portal/dates";
import { mindTheDrawer } from "./portal/drawer";
import { sayRefusalsInPlace } from "./portal/in_place";
import { forgetSecrets } from "./portal/integrations";
import { keepTheChosenTable } from "./portal/reservations";
import { sayNotesOnce } from "./portal/notes";
import { goOnAfterRestart } from "./portal/restarting";
import { openSentFormsAnew } from "./portal/returning";
import { sendOnce } from "./portal/sending";
import { followBoard } from "./portal/tonight";
import { keepWhatIsTyped } from "./portal/typing";
import { sayWhenUnreachable } from "./portal/unreachable";
import { dragTables } from "./portal/venue";

closeMenusOnEscape();
copyOnClick();
dragTables();
followBoard();
keepWhatIsTyped();
mindTheDrawer();
forgetSecrets();
keepTheChosenTable();
goOnAfterRestart();
sayRefusalsInPlace();
openSentFormsAnew();
sayDatesInWords();
sayNotesOnce();
sayWhenUnreachable();
sendOnce();
