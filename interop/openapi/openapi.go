// Package openapi asks others what they make of the OpenAPI document of /v1: linters whether it is in order, and generators
// for a client that works. It is a module and a package of npm of its own, so that the product carries none of them.
package openapi

//go:generate go tool ogen --config ogen.yaml --target goclient/paidonce --package paidonce --clean ../../docs/openapi.json
