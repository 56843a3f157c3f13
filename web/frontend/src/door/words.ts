/** The words of the page, all languages at once: a doorman's language needs no network. */

interface Spoken {
  name: string;
  direction: "ltr" | "rtl";
  words: Record<string, string>;
}

const KEY = "venuebox-door-language";
const FIRST_ISOLATE = "\u2068";
const POP_ISOLATE = "\u2069";

export class Words {
  readonly all: Readonly<Record<string, Spoken>>;
  private plural = new Intl.PluralRules("fr");
  code = "fr";

  constructor(source: string) {
    this.all = JSON.parse(source) as Record<string, Spoken>;
    this.use(read(KEY) ?? document.documentElement.lang);
  }

  /** Speak another language from now on, and remember it. */
  choose(code: string): void {
    this.use(code);
    try {
      localStorage.setItem(KEY, this.code);
    } catch {
      // A browser that keeps nothing asks again next time.
    }
  }

  private use(code: string): void {
    this.code = code in this.all ? code : "fr";
    this.plural = new Intl.PluralRules(this.code);
    document.documentElement.lang = this.code;
    document.documentElement.dir = this.all[this.code]?.direction ?? "ltr";
    this.fill(document);
  }

  /** The text of that name; each `{blank}` filled, and kept from turning the sentence around. */
  say(key: string, values: Readonly<Record<string, string | number>> = {}): string {
    const text = this.all[this.code]?.words[key] ?? "";
    return text.replace(/\{(\w+)\}/g, (_all, name: string) => {
      const value = values[name];
      if (typeof value === "number") return String(value);
      return `${FIRST_ISOLATE}${value ?? "—"}${POP_ISOLATE}`;
    });
  }

  has(key: string): boolean {
    return key in (this.all[this.code]?.words ?? {});
  }

  /** Why the box refuses: in this language where the box itself has not that one. */
  why(refusal: { code: string; message: string }): string {
    const known = `refused.${refusal.code}`;
    return this.has(known) ? this.say(known) : refusal.message;
  }

  guests(count: number): string {
    return this.say(`guests.${this.plural.select(count)}`, { count });
  }

  /** `sam. 21 nov.`, as the other pages write it. */
  day(date: string): string {
    const locale = { fr: "fr-FR", en: "en-GB", ar: "ar-MA" }[this.code] ?? "fr-FR";
    const shown = { weekday: "short", day: "numeric", month: "short", timeZone: "UTC" } as const;
    return new Intl.DateTimeFormat(`${locale}-u-nu-latn`, shown).format(new Date(`${date}T00:00Z`));
  }

  private fill(root: ParentNode): void {
    for (const place of root.querySelectorAll<HTMLElement>("[data-word]")) {
      place.textContent = this.say(place.dataset["word"] ?? "");
    }
    for (const place of root.querySelectorAll<HTMLElement>("[data-label]")) {
      place.setAttribute("aria-label", this.say(place.dataset["label"] ?? ""));
    }
    for (const place of root.querySelectorAll<HTMLElement>("[data-placeholder]")) {
      place.setAttribute("placeholder", this.say(place.dataset["placeholder"] ?? ""));
    }
    document.title = this.say("app");
  }
}

function read(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}
