// Package goclient has a client in Go that ogen generates: see ../openapi.go.
package goclient

import (
	"context"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/interop/openapi/goclient/paidonce"
	"github.com/paidonce/paidonce/interop/openapi/live"
)

// bearer is an API key.
type bearer string

// APIKey implements [paidonce.SecuritySource].
func (b bearer) APIKey(context.Context, paidonce.OperationName) (paidonce.APIKey, error) {
	return paidonce.APIKey{Token: string(b)}, nil
}

// The generated client works against the program. It checks what it receives: types, words, what must be there.
func TestGeneratedClient(t *testing.T) {
	t.Parallel()
	program := live.Start(t)
	ctx := t.Context()
	api, err := paidonce.NewClient(program.URL, bearer(program.Key))
	require.NoError(t, err)
	create := func(key string, amount int64) paidonce.CreateOrderRes {
		res, err := api.CreateOrder(ctx, &paidonce.NewOrderData{Data: paidonce.NewOrder{
			Amount: amount, Currency: "EUR",
			Metadata: paidonce.NewOptNilNewOrderMetadata(paidonce.NewOrderMetadata{ExternalRef: paidonce.NewOptNilString("go_1")}),
		}}, paidonce.CreateOrderParams{IdempotencyKey: paidonce.NewOptString(key)})
		require.NoError(t, err)
		return res
	}

	// Created, and the same key again is the same answer.
	created := as[*paidonce.CreateOrderCreated](t, create("go-key-1", 5000))
	order := created.Response.Data
	require.Equal(t, "go_1", order.ExternalRef)
	require.Equal(t, paidonce.OrderStatePending, order.State)
	require.Equal(t, `"1"`, created.ETag.Value)
	require.False(t, created.IdempotentReplayed.Set)
	replayed := as[*paidonce.CreateOrderCreated](t, create("go-key-1", 5000))
	require.EqualValues(t, "true", replayed.IdempotentReplayed.Value)
	require.Equal(t, order, replayed.Response.Data)

	// The key for something else is a mistake; another key for the same name is the order that there is.
	reused := as[*paidonce.CreateOrderUnprocessableEntity](t, create("go-key-1", 5001))
	require.Equal(t, paidonce.ProblemCodeIdempotencyKeyReused, reused.Code)
	known := as[*paidonce.CreateOrderOK](t, create("go-key-2", 5000))
	require.Equal(t, order.ID, known.Response.Data.ID)

	// Read, and who may not is told so.
	res, err := api.GetOrder(ctx, paidonce.GetOrderParams{ID: order.ID})
	require.NoError(t, err)
	require.Equal(t, order, as[*paidonce.GetOrderOKHeaders](t, res).Response.Data)
	res, err = api.GetOrder(ctx, paidonce.GetOrderParams{ID: uuid.New()})
	require.NoError(t, err)
	require.Equal(t, paidonce.ProblemCodeOrderNotFound, as[*paidonce.GetOrderNotFound](t, res).Code)
	stranger, err := paidonce.NewClient(program.URL, bearer("nobody's"))
	require.NoError(t, err)
	res, err = stranger.GetOrder(ctx, paidonce.GetOrderParams{ID: order.ID})
	require.NoError(t, err)
	require.Equal(t, paidonce.ProblemCodeUnauthorized, as[*paidonce.UnauthorizedHeaders](t, res).Response.Code)

	// Listed, a page at a time.
	other, err := api.CreateOrder(ctx, &paidonce.NewOrderData{Data: paidonce.NewOrder{Amount: 5000, Currency: "JPY"}}, paidonce.CreateOrderParams{})
	require.NoError(t, err)
	second := as[*paidonce.CreateOrderCreated](t, other).Response.Data
	var ids []uuid.UUID
	for cursor := (paidonce.OptString{}); ; {
		res, err := api.ListOrders(ctx, paidonce.ListOrdersParams{
			Limit: paidonce.NewOptInt64(1), Cursor: cursor, State: paidonce.NewOptListOrdersState(paidonce.ListOrdersStatePending),
		})
		require.NoError(t, err)
		page := as[*paidonce.OrderPage](t, res)
		require.Len(t, page.Data, 1)
		ids = append(ids, page.Data[0].ID)
		if page.Next.Null {
			break
		}
		cursor = paidonce.NewOptString(page.Next.Value)
	}
	require.ElementsMatch(t, []uuid.UUID{order.ID, second.ID}, ids)

	// What is wrong does not even leave the client.
	_, err = api.CreateOrder(ctx, &paidonce.NewOrderData{Data: paidonce.NewOrder{Amount: -1, Currency: "EUR"}}, paidonce.CreateOrderParams{})
	require.ErrorContains(t, err, "amount")
}

// as is an answer of a type.
func as[T any](t *testing.T, res any) T {
	t.Helper()
	answer, ok := res.(T)
	require.True(t, ok, "%T: %+v", res, res)
	return answer
}
