// The portal's script: parts of pages over htmx, and what each room adds. Without it every form
// still works; it only saves whole page loads.
import "htmx.org";

import { closeMenusOnEscape } from "./portal/menus";
import { copyOnClick } from "./portal/copying";
import { mindTheDrawer } from "./portal/drawer";
import { followBoard } from "./portal/tonight";

closeMenusOnEscape();
copyOnClick();
followBoard();
mindTheDrawer();
