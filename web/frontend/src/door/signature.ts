/** Verify Ed25519 signatures with the Web Crypto API or, in older browsers, with a library. */
import { verifyAsync } from "@noble/ed25519";
import type { PublicKey } from "./types";

const PASS_CONTEXT = "svc-guest-pass-v1";
const SNAPSHOT_CONTEXT = "svc-snapshot-v1";

type Bytes = Uint8Array<ArrayBuffer>;

/** Whether one of `keys` signed these 20 bytes of a guest pass. */
export function passIsSigned(
  keys: readonly PublicKey[], kid: number, signed: Bytes, signature: Bytes,
): Promise<boolean> {
  return isSigned(keys, kid, join(PASS_CONTEXT, signed), signature);
}

/** Whether one of `keys` signed this text of a snapshot. */
export function snapshotIsSigned(
  keys: readonly PublicKey[], kid: number, payload: string, signature: string,
): Promise<boolean> {
  const bytes = new TextEncoder().encode(payload);
  return isSigned(keys, kid, join(SNAPSHOT_CONTEXT, bytes), fromBase64Url(signature));
}

async function isSigned(
  keys: readonly PublicKey[], kid: number, message: Bytes, signature: Bytes,
): Promise<boolean> {
  const key = keys.find((known) => known.kid === kid);
  if (!key || signature.length !== 64) return false;
  return verify(fromBase64Url(key.publicKey), message, signature);
}

/** Whether the holder of `publicKey` signed `message`. */
export async function verify(publicKey: Bytes, message: Bytes, signature: Bytes): Promise<boolean> {
  try {
    const key = await crypto.subtle.importKey("raw", publicKey, "Ed25519", false, ["verify"]);
    return await crypto.subtle.verify("Ed25519", key, signature, message);
  } catch {
    return verifyByLibrary(publicKey, message, signature); // the browser is too old
  }
}

/** Verify a signature with the library. Returns false if the key or the signature is malformed. */
export async function verifyByLibrary(
  publicKey: Bytes, message: Bytes, signature: Bytes,
): Promise<boolean> {
  try {
    return await verifyAsync(signature, message, publicKey, { zip215: false });
  } catch {
    return false;
  }
}

function join(context: string, bytes: Uint8Array): Bytes {
  const start = new TextEncoder().encode(context);
  const all = new Uint8Array(start.length + bytes.length);
  all.set(start);
  all.set(bytes, start.length);
  return all;
}

export function fromBase64Url(text: string): Bytes {
  const plain = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(plain, (sign) => sign.charCodeAt(0));
}
