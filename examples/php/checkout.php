#!/usr/bin/env php
<?php
// A tiny checkout: registers a cart as an order, then confirms its payment. Every call may be repeated, by a retry here or by
// running the same command again after a crash: there is one order and one payment.
//
//	php checkout.php CART AMOUNT CURRENCY GATEWAY PAYMENT
//
// Environment: PAIDONCE_API_KEY; PAIDONCE_URL (default http://127.0.0.1:8080); SHOP_DIR, where intents are kept (default shop);
// PATIENCE, how many seconds to try (default 60). Exit codes: 0 done, 1 refused, 2 called wrongly, 75 not known yet: run it again.
// It needs the extension curl.

declare(strict_types=1);

final class Failure extends RuntimeException {}

// An intent is what is about to be asked for: its key, and the very bytes. It is on the disk before the first byte is sent, and
// whoever comes to the same step of the same cart again, a retry, a page that is reloaded, another process, sends it as it
// stands there. In a shop it is a row beside the cart: INSERT … ON CONFLICT DO NOTHING, then SELECT.
function intent(string $cart, string $step, string $path, array $data): array
{
    $folder = getenv('SHOP_DIR') ?: 'shop';
    if (!is_dir($folder) && !@mkdir($folder, recursive: true) && !is_dir($folder)) {
        throw new Failure("cannot make the folder $folder", 1);
    }
    $file = "$folder/$cart.$step.json";
    $draft = $file . '.' . bin2hex(random_bytes(8));
    $intent = ['key' => bin2hex(random_bytes(16)), 'path' => $path, 'body' => json_encode(['data' => $data], JSON_THROW_ON_ERROR)];
    $out = fopen($draft, 'x');
    if (!$out || !fwrite($out, json_encode($intent, JSON_THROW_ON_ERROR)) || !fsync($out)) {
        throw new Failure("cannot write $draft", 1);
    }
    fclose($out);
    @link($draft, $file); // all of it or nothing, and only the first one
    unlink($draft);
    return json_decode(file_get_contents($file), true, flags: JSON_THROW_ON_ERROR);
}

// post sends a request once and returns its status, body and Retry-After. Without a status there was no answer, or half of one.
// Redirects are not followed: keys are for this host alone.
function post(array $intent): array
{
    $retryAfter = 0;
    $curl = curl_init((getenv('PAIDONCE_URL') ?: 'http://127.0.0.1:8080') . $intent['path']);
    curl_setopt_array($curl, [
        CURLOPT_POSTFIELDS => $intent['body'],
        CURLOPT_HTTPHEADER => [
            'Authorization: Bearer ' . getenv('PAIDONCE_API_KEY'),
            'Content-Type: application/json',
            'Idempotency-Key: ' . $intent['key'],
        ],
        CURLOPT_HEADERFUNCTION => function ($curl, string $line) use (&$retryAfter): int {
            if (preg_match('/^Retry-After:\s*(\d+)\s*$/i', $line, $found)) {
                $retryAfter = (int) $found[1];
            }
            return strlen($line);
        },
        CURLOPT_RETURNTRANSFER => true,
        CURLOPT_CONNECTTIMEOUT => 5,
        CURLOPT_TIMEOUT => 15,
    ]);
    $body = curl_exec($curl);
    $status = $body === false ? 0 : curl_getinfo($curl, CURLINFO_RESPONSE_CODE);
    return [$status, $body === false ? curl_error($curl) : $body, $retryAfter];
}

// send asks until there is an answer. The same key and bytes every time: they name this one order, however often they arrive.
function send(array $intent): array
{
    $end = microtime(true) + (float) (getenv('PATIENCE') ?: 60);
    for ($attempt = 0; ; $attempt++) {
        [$status, $body, $retryAfter] = post($intent);
        $ok = $status >= 200 && $status < 300;
        if ($ok && $answer = json_decode($body, true)) {
            return $answer['data']; // 201: made now. 200: it was there already, which is as good.
        }
        $inProgress = $status === 409 && str_contains($body, '"idempotency_key_in_progress"');
        if (!$ok && $status > 0 && !$inProgress && $status !== 429 && $status < 500) {
            throw new Failure("refused: $status $body", 1);
        }
        $wait = max($retryAfter, mt_rand() / mt_getrandmax() * min(15, 0.25 * 2 ** $attempt));
        if (microtime(true) + $wait > $end) {
            throw new Failure("not known yet: $status $body; run this again", 75);
        }
        fprintf(STDERR, "once more in %.2f s: %d %s\n", $wait, $status, $body);
        usleep((int) ($wait * 1e6));
    }
}

function checkout(string $cart, int $amount, string $currency, string $gateway, string $payment): void
{
    $order = send(intent($cart, 'order', '/v1/orders', [
        'amount' => $amount, 'currency' => $currency, 'metadata' => ['external_ref' => $cart],
    ]));
    echo "order {$order['id']} {$order['state']}\n";

    // Here the customer pays at the gateway, which answers the shop. What it said is confirmed at once; its webhook may come
    // before, after or never: the order is paid once.
    $paid = send(intent($cart, 'confirm', "/v1/orders/{$order['id']}/confirm", [
        'gateway' => $gateway, 'payment' => $payment, 'status' => 'captured', 'amount' => $amount, 'currency' => $currency,
    ]));
    echo "order {$paid['id']} {$paid['state']}\n";
}

if ($argc !== 6 || !getenv('PAIDONCE_API_KEY') || !preg_match('/^[\w.-]+$/D', $argv[1]) || !preg_match('/^\d{1,15}$/D', $argv[2])) {
    fwrite(STDERR, "usage: PAIDONCE_API_KEY=… checkout.php CART AMOUNT CURRENCY GATEWAY PAYMENT\n");
    exit(2);
}
try {
    checkout($argv[1], (int) $argv[2], ...array_slice($argv, 3));
} catch (Failure $failure) {
    fwrite(STDERR, $failure->getMessage() . "\n");
    exit($failure->getCode());
}
