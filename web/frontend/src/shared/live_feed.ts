/**
 * The live feed of a page. All pages of a browser share one stream from the box, because a browser
 * opens at most six connections to a host, and a scan must never wait for one of them.
 *
 * The page that holds the Web Lock keeps the stream and passes on what it hears over a
 * BroadcastChannel. When it closes, the next page gets the lock, asks all pages what they follow and
 * where they are, and opens a new stream there. A hidden page follows nothing; when it is shown
 * again, it continues from where it was, or is told to reset.
 */

const NAME = "venuebox-live"; // of the lock and of the channel
const GATHER_MS = 20; // pages that join within this time are joined in one new stream

/** A change. `id` is the position after it. `kind` is the box's (web/live_stream.py). */
export interface Told {
  kind: string;
  id: string;
  data: unknown;
}

interface Page {
  id: string;
  /** Such as `live!door` or `test!2026-11-21`. */
  shows: string;
  after: string;
}

type Message =
  | { type: "ask" } // a new leader asks all pages to join
  | { type: "join"; page: Page }
  | { type: "leave"; id: string }
  | { type: "open"; ids: string[] }
  | { type: "lost"; ids: string[] } // the stream broke, or the page has no right to it
  | { type: "told"; to: string; told: Told };

interface Handlers {
  told(told: Told): void;
  open(): void;
  /** The feed is closed. The page finds out why, then calls `follow()` again. */
  lost(): void;
}

export class LiveFeed {
  private readonly id = crypto.randomUUID();
  private channel: BroadcastChannel | null = null;
  private release: (() => void) | null = null;
  private isWanted = false;
  private isAway = false; // the page was left; the browser may keep it and show it again

  /** `after` is the last position that the page knows, or "". */
  constructor(
    private readonly shows: string, private after: string, private readonly handlers: Handlers,
  ) {
    const update = () => this.update();
    document.addEventListener("visibilitychange", update);
    addEventListener("pagehide", () => {
      this.isAway = true;
      update();
    });
    addEventListener("pageshow", () => {
      this.isAway = false;
      update();
    });
  }

  /** Follow the changes, now or as soon as the page is visible. */
  follow(): void {
    this.isWanted = true;
    this.update();
  }

  close(): void {
    this.isWanted = false;
    this.update();
  }

  private update(): void {
    const isShown = document.visibilityState === "visible" && !this.isAway;
    if (this.isWanted && isShown) this.join();
    else this.leave();
  }

  private join(): void {
    if (this.channel) return;
    const channel = new BroadcastChannel(NAME);
    this.channel = channel;
    channel.onmessage = ({ data }: MessageEvent<Message>) => this.receive(data);
    this.post({ type: "join", page: this.page() });
    const waiting = new AbortController();
    let leader: Leader | null = null;
    this.release = () => {
      waiting.abort();
      leader?.close();
    };
    const lead = () => new Promise<void>((done) => {
      if (waiting.signal.aborted) done();
      else leader = new Leader(done);
    });
    navigator.locks.request(NAME, { signal: waiting.signal }, lead).catch(() => undefined);
  }

  private leave(): void {
    if (!this.channel) return;
    this.post({ type: "leave", id: this.id });
    this.channel.close();
    this.channel = null;
    this.release?.();
  }

  private page(): Page {
    return { id: this.id, shows: this.shows, after: this.after };
  }

  private post(message: Message): void {
    this.channel?.postMessage(message);
  }

  private receive(message: Message): void {
    if (message.type === "ask") this.post({ type: "join", page: this.page() });
    if (message.type === "open" && message.ids.includes(this.id)) this.handlers.open();
    if (message.type === "lost" && message.ids.includes(this.id)) {
      this.close();
      this.handlers.lost();
    }
    if (message.type !== "told" || message.to !== this.id) return;
    this.after = message.told.id;
    if (message.told.kind !== "heartbeat") this.handlers.told(message.told);
  }
}

/** The page that keeps the stream. It lives while its page holds the lock. */
class Leader {
  private readonly channel = new BroadcastChannel(NAME);
  private readonly pages = new Map<string, Page>();
  private stream: EventSource | null = null;
  private timer = 0;

  constructor(private readonly done: () => void) {
    this.channel.onmessage = ({ data }: MessageEvent<Message>) => this.receive(data);
    this.post({ type: "ask" });
  }

  close(): void {
    clearTimeout(this.timer);
    this.stream?.close();
    this.channel.close();
    this.done();
  }

  private post(message: Message): void {
    this.channel.postMessage(message);
  }

  private receive(message: Message): void {
    if (message.type === "join") this.pages.set(message.page.id, message.page);
    else if (message.type !== "leave" || !this.pages.delete(message.id)) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.open(), GATHER_MS);
  }

  /** Open a stream for the pages as they are now, in place of the one for those before. */
  private open(): void {
    this.stream?.close();
    this.stream = null;
    if (this.pages.size === 0) return;
    const query = new URLSearchParams();
    for (const { id, shows, after } of this.pages.values()) {
      query.append("page", `${id}!${shows}!${after}`);
    }
    const stream = new EventSource(`/live?${query}`);
    this.stream = stream;
    stream.onopen = () => this.post({ type: "open", ids: [...this.pages.keys()] });
    stream.onmessage = ({ data }) => this.tell(JSON.parse(data as string) as Told & { to: string });
    // EventSource would open the same URL again, with outdated positions.
    stream.onerror = () => {
      stream.close();
      this.lose([...this.pages.keys()]);
    };
  }

  private tell({ to, ...told }: Told & { to: string }): void {
    const page = this.pages.get(to);
    if (!page) return;
    if (told.kind === "over") return this.lose([to]);
    page.after = told.id;
    this.post({ type: "told", to, told });
  }

  private lose(ids: string[]): void {
    for (const id of ids) this.pages.delete(id);
    this.post({ type: "lost", ids });
  }
}
