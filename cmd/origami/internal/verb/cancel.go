package verb

import "context"

// UntilCancelled returns what compute does, or the context's error as soon as it is cancelled: for arithmetic and
// drawing that take seconds and do not look at a context. After a cancellation the process ends, and compute with it.
func UntilCancelled(ctx context.Context, compute func() error) error {
	done := make(chan error, 1)
	go func() { done <- compute() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
