// Package cli builds the command tree, runs it, and turns an error into one line on stderr and an exit code.
package cli

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/cmd/origami/internal/config"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/pickcmd"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/plugincmd"
	"github.com/origami-gemm/origami/core/diag"
)

// System is what lies outside the command line: the process and the plugins.
type System struct {
	Args    []string // without the program's name
	Streams *iostreams.Streams
	Getenv  func(string) string
	// Connect reaches the plugins under the given settings.
	Connect func(ctx context.Context, s config.Settings, warn func(text string)) (session.Host, error)
	Plugins plugincmd.Actions
	// Export generates kernels.
	Export pickcmd.Generate
	// KillPlugins kills the plugins of this process that still run. It is nil if there are none.
	KillPlugins func()
	// Protocol is the version of the plugin protocol, which `origami version` prints.
	Protocol int
}

// Main runs one command line and returns its exit code.
func Main(sys System) int {
	// A reader that goes away (origami … | head) must end us quietly, not with a signal.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	ctx, stop := untilSignal()
	defer stop()

	f := &session.Factory{Streams: sys.Streams, Getenv: sys.Getenv, Args: sys.Args, Connect: sys.Connect}
	f.Streams.JSONErrors = asksForJSON(sys.Args)
	f.Streams.Hint = withHint
	g := newGuard(ctx, sys.KillPlugins, func(err error) {
		f.Streams.CloseStatus()
		f.Streams.Report(err)
	})
	defer close(g.done)
	err := run(ctx, f, sys)
	if ctx.Err() != nil {
		_ = f.Streams.Flush() // first: plugins may not end in time. The second flush has the same error.
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if flushed := f.Streams.Flush(); err == nil || errors.Is(flushed, syscall.EPIPE) {
		err = flushed
	}
	if errors.Is(err, syscall.EPIPE) {
		return int(exitOK)
	}
	if ctx.Err() != nil && (err != nil || g.killed.Load()) {
		if !errors.Is(err, session.ErrInterrupted) {
			err = interruptedError(ctx)
		}
		if g.reported.CompareAndSwap(false, true) {
			f.Streams.Report(err)
		}
		return int(codeOf(ctx))
	}
	if err != nil && !iostreams.IsReported(err) {
		f.Streams.Report(err)
	}
	return int(codeOfError(err))
}

func run(ctx context.Context, f *session.Factory, sys System) error {
	args, all := sys.Args, false
	// cobra parses flags before it looks at --help, and most commands have no --all.
	if i := slices.Index(args, "--all"); i >= 0 &&
		(args[0] == "help" || slices.Contains(args, "-h") || slices.Contains(args, "--help")) {
		args, all = slices.Delete(slices.Clone(args), i, i+1), true
	}
	root := Root(f, sys)
	help(root, cmp.Or(f.Streams.Width, 80), all) // as in a manual page where the screen is unknown
	root.SetArgs(args)
	return root.ExecuteContext(ctx)
}

// Help lists the commands in the order of AddCommand.
func init() { cobra.EnableCommandSorting = false }

// The groups of commands in help.
const (
	groupAsk  = "ask"
	groupLook = "look"
)

// Root returns the command tree.
func Root(f *session.Factory, sys System) *cobra.Command {
	_, version := versionsOf(sys.Protocol)
	root := &cobra.Command{
		Use:   "origami",
		Short: "Pick GEMM kernel configurations from analytical models",
		Long: "origami picks the kernel configuration for a matrix multiplication from an analytical model of the\n" +
			"GPU, says why, and compares architectures. No GPU is needed: architectures are models, and come\n" +
			"from plugins.",
		Example: `  origami --arch sm89 select -m 4096 -n 4096 -k 4096
  origami --arch sm90 --device h200 rank -m 4096 -n 4096 -k 4096 --top 10
  origami --arch sm89 explain -m 2048 -n 2048 -k 2048
  origami compare --arch sm89 --arch gfx942 --arch sm90@h200 -m 4096 -n 4096 -k 4096`,
		Version:           version,
		Args:              session.NoArguments,
		SilenceErrors:     true,
		SilenceUsage:      true,
		DisableAutoGenTag: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.HasParent() && cmd.Flags().NFlag() == 0 {
				return nil // it prints help, which must work when the settings do not
			}
			return f.Configure(cmd)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().NFlag() == 0 {
				return cmd.Help()
			}
			return diag.Inputf("no command is given").
				Do("`origami help` lists the commands, as in origami --arch sm89 select -m 4096 -n 4096 -k 4096")
		},
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.InitDefaultVersionFlag()
	root.SetOut(f.Streams.Writer())
	root.SetErr(f.Streams.ErrWriter())
	root.SetIn(f.Streams.In)
	root.SetFlagErrorFunc(flagError)
	root.Flags().SortFlags = false
	config.Register(root.PersistentFlags())
	root.AddGroup(&cobra.Group{ID: groupAsk, Title: "Ask a model:"}, &cobra.Group{ID: groupLook, Title: "Look around:"})
	for _, v := range verbs(f, sys) {
		v.GroupID = v.group
		session.CheckArguments(v.Command)
		root.AddCommand(v.Command)
	}
	root.AddCommand(
		&cobra.Command{Use: "exit-codes", Short: "What the exit codes mean", Long: exitCodesHelp()},
		&cobra.Command{Use: "environment", Short: "Settings, environment variables and the settings file",
			Long: config.Help()})
	root.SetHelpCommandGroupID(groupLook)
	root.SetCompletionCommandGroupID(groupLook)
	root.InitDefaultCompletionCmd()
	complete(root, f)
	return root
}
