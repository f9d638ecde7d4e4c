// Package bench measures Paidonce next to what it would replace, in one run, so that only ratios are read from it:
//
//	go test ./bench -run '^$' -bench Ingest -benchtime 1x
//
// It starts its own durable Postgres. Absolute figures depend on the machine and on whatever else it does.
package bench
