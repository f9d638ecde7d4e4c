package dev_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/app"
	"github.com/paidonce/paidonce/internal/dev"
	"github.com/paidonce/paidonce/store/storetest"
)

// Databases of stages that were killed go, those of stages that live stay.
func TestDropForgotten(t *testing.T) {
	t.Parallel()
	ended := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	require.NoError(t, ended.Run())
	server := storetest.OpenURL(t)
	dead := fmt.Sprintf("paidonce_replay_%d_test", ended.Process.Pid)
	alive := fmt.Sprintf("paidonce_replay_%d_test", os.Getpid())
	for _, name := range []string{dead, alive} {
		require.NoError(t, app.CreateDatabase(t.Context(), server, name))
		require.NoError(t, app.CreateDatabase(t.Context(), server, name), "it is there already")
	}
	t.Cleanup(func() { require.NoError(t, app.DropDatabase(context.WithoutCancel(t.Context()), server, alive)) })

	require.NoError(t, dev.DropForgotten(t.Context(), server))
	left, err := app.Databases(t.Context(), server, "paidonce_replay_")
	require.NoError(t, err)
	require.Contains(t, left, alive)
	require.NotContains(t, left, dead)
}
