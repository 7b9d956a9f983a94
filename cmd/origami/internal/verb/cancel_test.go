package verb

import (
	"context"
	"errors"
	"testing"
)

// An interrupt ends arithmetic that does not look at its context.
func TestUntilCancelled(t *testing.T) {
	v := 0
	if err := UntilCancelled(t.Context(), func() error { v = 7; return nil }); v != 7 || err != nil {
		t.Errorf("got %d, %v", v, err)
	}
	failure := errors.New("no")
	if err := UntilCancelled(t.Context(), func() error { return failure }); !errors.Is(err, failure) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	forever := make(chan struct{})
	defer close(forever)
	err := UntilCancelled(ctx, func() error {
		cancel()
		<-forever
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
