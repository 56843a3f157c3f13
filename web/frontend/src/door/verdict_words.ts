/** What a verdict says in one sentence. */
import { clockOf } from "./venue_time";
import type { Guest, Me, Verdict } from "./types";
import type { Words } from "./words";

/** The box's own sentence in this language, else ours. */
export function sentenceOf(verdict: Verdict, words: Words, me: Me | null): string {
  const { result, reservation: guest, firstCheckIn: first } = verdict;
  const values = {
    arrived: guest?.arrived ?? 0,
    guests: guest?.guests ?? 0,
    admitted: words.guests(Math.abs(verdict.admitted)),
    party: words.guests(Math.abs(verdict.admitted)),
    date: guest ? words.day(guest.date) : "",
    slot: guest?.slot ?? words.say("whole"),
    time: first && me ? clockOf(first.at, me) : "",
    door: [first?.terminal, first?.by].filter(Boolean).join(", "),
  };
  // The box's own leaves out who let them in.
  if (result === "already_checked_in" && first) {
    return words.say(values.door ? "say.already_since" : "say.already_at", values);
  }
  const spoken = me?.terminal.language === words.code ? verdict.say?.staff : undefined;
  if (spoken) return spoken;
  if ((result === "not_yet" || result === "too_late") && !guest) {
    return words.say("say.another_evening");
  }
  return words.say(`say.${result}`, values);
}

/** Whom the house wants to be met by somebody: the notes or the table say so. */
export function isVip(guest: Guest): boolean {
  return guest.vip === true || /(^|[^\p{L}])VIP([^\p{L}]|$)/iu.test(`${guest.table.name} ${guest.notes ?? ""}`);
}

/** French sets a space before these signs, at which no line may end. */
export function unbroken(sentence: string): string {
  return sentence.replace(/ (?=[:;?!»])/g, "\u00a0");
}
