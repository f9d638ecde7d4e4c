#!/usr/bin/env bash
# A tiny checkout: registers a cart as an order, then confirms its payment. Every call may be repeated, by a retry here or by
# running the same command again after a crash: there is one order and one payment.
#
#	checkout.sh CART AMOUNT CURRENCY GATEWAY PAYMENT
#
# Environment: PAIDONCE_API_KEY; PAIDONCE_URL (default http://127.0.0.1:8080); SHOP_DIR, where intents are kept (default shop);
# PATIENCE, how many seconds to try (default 60). Exit codes: 0 done, 1 refused, 2 called wrongly, 75 not known yet: run it again.
set -euo pipefail

url=${PAIDONCE_URL:-http://127.0.0.1:8080}
folder=${SHOP_DIR:-shop}
patience=${PATIENCE:-60}

if [[ $# != 5 || -z ${PAIDONCE_API_KEY:-} || ! $* =~ ^[A-Za-z0-9_.-]+\ [0-9]+\ [A-Z]{3}\ [A-Za-z0-9_.-]+\ [A-Za-z0-9_.-]+$ ]]; then
    echo "usage: PAIDONCE_API_KEY=… checkout.sh CART AMOUNT CURRENCY GATEWAY PAYMENT" >&2
    exit 2
fi
cart=$1 amount=$2 currency=$3 gateway=$4 payment=$5

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# intent STEP PATH BODY writes down what is about to be asked for: its key, the path and the very bytes, a line each. The file is
# there before the first byte is sent, and whoever comes to the same step of the same cart again, a retry or another process,
# sends it as it stands there.
intent() {
    local file=$folder/$cart.$1 draft
    mkdir -p "$folder"
    draft=$(mktemp "$file.XXXXXX")
    printf '%s\n' "$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')" "$2" "$3" >"$draft"
    sync "$draft"
    ln "$draft" "$file" 2>/dev/null || true # all of it or nothing, and only the first one
    rm "$draft"
    cat "$file"
}

# send reads an intent and asks until there is an answer, which it prints. The same key and bytes every time: they name this one
# order, however often they arrive. The API key is read from a file: other users can see the arguments of a command.
send() {
    local key path body status attempt=0 wait after
    { read -r key && read -r path && read -r body; } || return 1
    printf 'Authorization: Bearer %s\n' "$PAIDONCE_API_KEY" >"$scratch/auth"
    while :; do
        status=$(curl -sS --max-time 15 "$url$path" -H @"$scratch/auth" -H "Idempotency-Key: $key" -H 'Content-Type: application/json' \
            --data-binary "$body" -o "$scratch/answer" -D "$scratch/head" -w '%{http_code}') || status=none # or half of one: it may be there or not
        case $status in
        2??) # 201: made now. 200: it was there already, which is as good.
            if grep -q '"id"' "$scratch/answer"; then
                cat "$scratch/answer"
                return
            fi
            ;;
        none | 429 | 5??) ;;
        409) grep -q '"idempotency_key_in_progress"' "$scratch/answer" || refused "$status" ;;
        *) refused "$status" ;;
        esac
        after=0
        [ "$status" = none ] || after=$(sed -nE 's/^retry-after: *([0-9]+).*/\1/Ip' "$scratch/head")
        wait=$((RANDOM % (250 << (attempt < 6 ? attempt : 6)))) # milliseconds
        ((wait >= ${after:-0} * 1000)) || wait=$((after * 1000))
        if ((SECONDS * 1000 + wait > patience * 1000)); then
            echo "not known yet: $status; run this again" >&2
            exit 75
        fi
        echo "once more in $wait ms: $status" >&2
        sleep "$((wait / 1000)).$(printf %03d $((wait % 1000)))"
        attempt=$((attempt + 1))
    done
}

refused() {
    echo "refused: $1 $(cat "$scratch/answer")" >&2
    exit 1
}

# say shows an order, whose first id and state are its own, and sets id. A shop would use jq.
say() {
    [[ $1 =~ \"id\":\"([^\"]+)\" ]] && id=${BASH_REMATCH[1]}
    [[ $1 =~ \"state\":\"([^\"]+)\" ]] && echo "order $id ${BASH_REMATCH[1]}"
}

order=$(intent order /v1/orders \
    "{\"data\":{\"amount\":$amount,\"currency\":\"$currency\",\"metadata\":{\"external_ref\":\"$cart\"}}}" | send)
say "$order"

# Here the customer pays at the gateway, which answers the shop. What it said is confirmed at once; its webhook may come before,
# after or never: the order is paid once.
SECONDS=0
paid=$(intent confirm "/v1/orders/$id/confirm" \
    "{\"data\":{\"gateway\":\"$gateway\",\"payment\":\"$payment\",\"status\":\"captured\",\"amount\":$amount,\"currency\":\"$currency\"}}" | send)
say "$paid"
