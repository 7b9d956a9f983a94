package verb

import (
	"context"

	"github.com/origami-gemm/origami/cmd/origami/internal/session"
)

// Report writes a report to the folder that --report names, and says so. Without a folder it does nothing. write also
// gets the words of the command.
func Report(ctx context.Context, f *session.Factory, folder string, write func(folder string, args []string) error,
) error {
	if folder == "" {
		return nil
	}
	_, err := UntilCancelled(ctx, func() (struct{}, error) { return struct{}{}, write(folder, f.Args) })
	if err != nil {
		return err
	}
	f.Streams.Note("the report is in " + folder)
	return nil
}
