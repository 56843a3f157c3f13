<?php
// Book a table: SERVICE_URL=… SERVICE_KEY=… php book.php DATE SLOT GUESTS NAME PHONE REFERENCE
declare(strict_types=1);

/** [status, decoded body, header lines]. Repeats after 429, 503 and network errors, and never a 409. */
function call(string $method, string $path, ?string $body = null, int $tries = 5): array
{
    for ($made = 1; ; $made++) {
        $options = [
            'method' => $method,
            'header' => "Content-Type: application/json\r\n"
                . 'Authorization: Bearer ' . getenv('SERVICE_KEY'),
            'ignore_errors' => true, // a refusal has a body too
            'follow_location' => 0,
            'timeout' => 15,
        ];
        if ($body !== null) {
            $options['content'] = $body;
        }
        $context = stream_context_create(['http' => $options]);
        $answer = @file_get_contents(getenv('SERVICE_URL') . $path, false, $context);
        $decoded = json_decode((string) $answer, true); // null: none came, or not the box's own
        $wait = 2 ** ($made - 1);
        if ($decoded !== null) {
            preg_match('#^HTTP/\S+ (\d+)#', $http_response_header[0], $line);
            $status = (int) $line[1];
            if (!in_array($status, [429, 503], true) || $made === $tries) {
                return [$status, $decoded, $http_response_header];
            }
            foreach ($http_response_header as $header) {
                if (preg_match('/^Retry-After: (\d+)/i', $header, $found)) {
                    $wait = (int) $found[1];
                }
            }
        } elseif ($made === $tries) {
            // No connection, it broke, or it was not the box that answered: the booking may exist or
            // not. Run again, this program asks for it.
            give_up('the service cannot be reached');
        }
        sleep($wait);
    }
}

function give_up(string $message): never
{
    fwrite(STDERR, $message . "\n");
    exit(1);
}

/** Ids of free tables for that party, the smallest first. */
function tables_that_fit(string $date, string $slot, int $guests): array
{
    [, $venue] = call('GET', '/v1/venue');
    $query = http_build_query(['date' => $date, 'slot' => $slot]);
    [$status, $availability] = call('GET', "/v1/availability?$query");
    if ($status !== 200) {
        give_up("$availability[code]: $availability[error_en]");
    }
    $free = array_column(array_filter($availability['tables'], fn ($t) => $t['available']), 'id');
    $fitting = array_filter($venue['tables'], fn ($t) => in_array($t['id'], $free, true)
        && $t['capacityMin'] <= $guests && $guests <= $t['capacityMax']);
    usort($fitting, fn ($one, $other) => $one['capacityMax'] <=> $other['capacityMax']);
    return array_column($fitting, 'id');
}

/** Whole or not at all, before it is sent. */
function store(string $stored, array $request): void
{
    $text = json_encode($request, JSON_THROW_ON_ERROR);
    if (file_put_contents("$stored.part", $text) === false || !rename("$stored.part", $stored)) {
        give_up('the request cannot be stored');
    }
}

/** Ends with the creation result of the stored request; returns when its table is taken. */
function ask(string $stored): void
{
    [$status, $answer, $headers] = call('POST', '/v1/reservations', file_get_contents($stored));
    if (preg_grep('/^Reservation-Status: (cancelled|declined)$/i', $headers)) {
        unlink($stored);
        give_up('this booking was cancelled since: use a new reference');
    }
    if ($status === 201 || $status === 200) { // 200: it was booked before, here is that result
        echo json_encode($answer, JSON_THROW_ON_ERROR | JSON_UNESCAPED_SLASHES), "\n";
        exit(0);
    }
    if (in_array($status, [400, 409], true) || $answer['code'] === 'TABLE_NOT_FOUND') {
        unlink($stored); // nothing was booked; any other refusal leaves that open
    }
    if ($answer['code'] !== 'TABLE_TAKEN') {
        give_up("$answer[code]: $answer[error_en]");
    }
}

[, $date, $slot, $guests, $name, $phone, $reference] = $argv;
$stored = rawurlencode($reference) . '.json'; // in production: a column of your own booking
if (file_exists($stored)) { // started again: it may be booked or not
    ask($stored);
}
foreach (tables_that_fit($date, $slot, (int) $guests) as $table) {
    store($stored, [
        'tableId' => $table,
        'date' => $date,
        'slot' => $slot,
        'guests' => (int) $guests,
        'customer' => ['name' => $name, 'phone' => $phone],
        'externalRef' => $reference,
        'idempotencyKey' => $reference, // your own number of this booking
        'notifyCustomer' => false,
    ]);
    ask($stored);
}
give_up("no table for $guests on $date at $slot");
