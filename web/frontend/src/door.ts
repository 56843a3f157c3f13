/** The entry point of the door app (web/templates/door/app.html). */
import { App } from "./door/app";

void new App().start();
