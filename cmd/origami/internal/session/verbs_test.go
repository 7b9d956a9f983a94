package session

import (
	"context"
	"errors"
	"github.com/origami-gemm/origami/internal/testing/must"
	"testing"
)

// An interrupt ends arithmetic that does not look at its context.
func TestUntilCancelled(t *testing.T) {
	if v, err := UntilCancelled(t.Context(), func() (int, error) { return 7, nil }); v != 7 || err != nil {
		t.Errorf("got %d, %v", v, err)
	}
	failure := errors.New("no")
	if _, err := UntilCancelled(t.Context(), func() (int, error) { return 0, failure }); !errors.Is(err, failure) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	forever := make(chan struct{})
	defer close(forever)
	_, err := UntilCancelled(ctx, func() (int, error) {
		cancel()
		<-forever
		return 0, nil
	})
	must.That(t, errors.Is(err, context.Canceled), "got %v", err)
}
