<?php
// Receive webhooks.
// SERVICE_WEBHOOK_SECRET=whsec_… SERVICE_INBOX=/a/folder php -S 127.0.0.1:9000 receiver.php
declare(strict_types=1);

const TOLERANCE_SECONDS = 300;

/** Checked on the raw bytes, before anything reads the JSON. */
function is_genuine(string $signature, string $raw_body): bool
{
    $t = '';
    $given = [];
    foreach (explode(',', $signature) as $part) {
        [$name, $value] = explode('=', trim($part), 2) + ['', ''];
        if ($name === 't' && $t === '') {
            $t = $value;
        } elseif ($name === 'v1') {
            $given[] = $value;
        }
    }
    if (!ctype_digit($t) || abs(time() - (int) $t) > TOLERANCE_SECONDS) {
        return false;
    }
    $expected = hash_hmac('sha256', "$t.$raw_body", getenv('SERVICE_WEBHOOK_SECRET'));
    // After a roll of the secret there are two v1 for a day: one that fits is enough.
    return in_array(true, array_map(fn ($value) => hash_equals($expected, $value), $given), true);
}

$raw_body = file_get_contents('php://input');
if (!is_genuine($_SERVER['HTTP_X_SERVICE_SIGNATURE'] ?? '', $raw_body)) {
    http_response_code(400);
    exit;
}
$delivery = $_SERVER['HTTP_X_SERVICE_DELIVERY'] ?? '';
if (!preg_match('/^[0-9a-f-]{36}$/', $delivery)) {
    http_response_code(400);
    exit;
}
// The inbox is the memory of what was seen, and the queue of a worker that runs beside this:
// mode x makes the file only once. In production a table with a unique column does the same.
$file = @fopen(getenv('SERVICE_INBOX') . "/$delivery.json", 'x');
if ($file !== false) {
    fwrite($file, $raw_body);
    fclose($file);
} elseif (!file_exists(getenv('SERVICE_INBOX') . "/$delivery.json")) {
    http_response_code(500); // it could not be kept: let it come again
    exit;
}
http_response_code(204); // at once, for a duplicate too: the work comes afterwards
