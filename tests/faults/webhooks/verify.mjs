// Reads [{payload (base64), header, secret}, …]; writes which of them Stripe's library accepts.
import { readFileSync } from "node:fs";
import Stripe from "stripe";

const cases = JSON.parse(readFileSync(0, "utf8"));
const { webhooks } = new Stripe("sk_test_no_account");
const accepted = cases.map(({ payload, header, secret, tolerance }) => {
  try {
    webhooks.signature.verifyHeader(Buffer.from(payload, "base64"), header, secret, tolerance);
    return true;
  } catch (error) {
    if (error.type !== "StripeSignatureVerificationError") throw error;
    return false;
  }
});
console.log(JSON.stringify(accepted));
