/** Access codes as people type them: the twin of appliance/door/guest_pass.py. */
import { western } from "../_fold";

const FORM = /^(?:SVC)?([0-9A-Z]{4})$/;
const ALIKE: Readonly<Record<string, string>> = {
  "0": "QD", O: "QD", Q: "QD", D: "DQ", "1": "J7", I: "J7", L: "J7", "2": "2Z", Z: "Z2", "5": "5S",
  S: "S5", "6": "6G", G: "G6", "8": "8B", B: "B8", U: "UV", V: "VU",
};

/** The code as stored, `SVC-XXXX`, or null for a text of another form. */
export function parseAccessCode(text: string): string | null {
  const match = FORM.exec(western(text).toUpperCase().replace(/[\s._–-]+/g, ""));
  return match ? `SVC-${match[1]}` : null;
}

/** Whether one code can be mistaken for the other. */
export function isLookalike(typed: string, stored: string): boolean {
  return [...typed].every((sign, n) => {
    const other = stored[n] ?? "";
    return sign === other || (n >= 4 && (ALIKE[sign] ?? "").includes(other));
  });
}
