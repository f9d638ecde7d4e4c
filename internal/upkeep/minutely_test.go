package upkeep_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/upkeep"
)

func TestMinutelyGoesOnAfterATaskHasFailed(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	var ran []string
	task := func(name string, err error) upkeep.Task {
		return upkeep.Task{Name: name, Run: func(context.Context) (int64, error) {
			ran = append(ran, name)
			return 1, err
		}}
	}
	m, err := upkeep.NewMinutely(nil, task("a", nil), task("b", boom), task("c", nil))
	require.NoError(t, err)
	err = m.Run(t.Context())
	require.ErrorIs(t, err, boom)
	require.ErrorContains(t, err, "b: ")
	require.Equal(t, []string{"a", "b", "c"}, ran)

	_, err = upkeep.NewMinutely(nil, upkeep.Task{Name: "x"})
	require.Error(t, err)
	_, err = upkeep.NewMinutely(nil, upkeep.Task{Run: task("a", nil).Run})
	require.Error(t, err)
}
