/** The app's texts in all languages, so that switching the language needs no network. */

interface Language {
  name: string;
  direction: "ltr" | "rtl";
  words: Record<string, string>;
}

const KEY = "venuebox-door-language";
const FIRST_ISOLATE = "\u2068";
const POP_ISOLATE = "\u2069";

export class Words {
  readonly all: Readonly<Record<string, Language>>;
  private plural = new Intl.PluralRules("fr");
  code = "fr";

  constructor(source: string) {
    this.all = JSON.parse(source) as Record<string, Language>;
    this.use(read(KEY) ?? document.documentElement.lang);
  }

  /** Switch to a language and store the choice. */
  choose(code: string): void {
    this.use(code);
    try {
      localStorage.setItem(KEY, this.code);
    } catch {
      // Without storage, the choice lasts until the page is closed.
    }
  }

  private use(code: string): void {
    this.code = code in this.all ? code : "fr";
    this.plural = new Intl.PluralRules(this.code);
    document.documentElement.lang = this.code;
    document.documentElement.dir = this.all[this.code]?.direction ?? "ltr";
    this.fill(document);
  }

  /**
   * Return the text for `key`, with its `{placeholders}` replaced by `values`. Text values are
   * wrapped in bidi isolates.
   */
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

  /** Return the app's text for a refusal. If the app has none, return the box's message. */
  refusalText(refusal: { code: string; message: string }): string {
    const known = `refused.${refusal.code}`;
    return this.has(known) ? this.say(known) : refusal.message;
  }

  guests(count: number): string {
    return this.say(`guests.${this.plural.select(count)}`, { count });
  }

  /** Return a short date, such as `sam. 21 nov.` */
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
