package host_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-plugin"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/internal/testing/fake"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/sdk/host"
	"github.com/origami-gemm/origami/sdk/serve"
	"github.com/origami-gemm/origami/sdk/wire"
)

// startForgeries are the faults before the first call, when a plugin starts or describes itself.
var startForgeries = []forgery{
	{name: "exits", says: "(exit status 3): cannot load libnone.so", do: func(folder) (any, error) {
		write(2, "cannot load libnone.so\n")
		os.Exit(3)
		return nil, nil
	}},
	{name: "exits without a word", do: func(folder) (any, error) { os.Exit(0); return nil, nil }},
	{name: "panics", says: "(exit status 2): panic: boom", do: func(folder) (any, error) { panic("boom") }},
	{name: "is killed", says: "(signal: killed)", do: func(folder) (any, error) {
		return nil,
			killSelf(syscall.SIGKILL)
	}},
	{name: "hangs", hangs: true, says: startPatience.String(), do: func(folder) (any, error) {
		for {
			time.Sleep(time.Hour)
		}
	}},
	{name: "is stopped", hangs: true, says: startPatience.String(), do: func(folder) (any, error) {
		return nil, killSelf(syscall.SIGSTOP)
	}},
	{name: "closes its output and hangs", hangs: true, do: func(folder) (any, error) {
		_ = syscall.Close(1)
		for {
			time.Sleep(time.Hour)
		}
	}},
	{name: "prints another program's words", do: printAnd("Hello, I am a friendly program.\nHow are you?\n")},
	{name: "prints bytes that are no text", do: printAnd("\x00\xff\xfe\x1b[2J\x00\n")},
	{name: "prints 1 MiB without an end of line", do: func(f folder) (any, error) {
		return printAnd(strings.Repeat("x", 1<<20))(f)
	}},
	{name: "prints without end", hangs: true, do: func(folder) (any, error) {
		for {
			write(1, "so it goes and goes and goes and goes\n")
		}
	}},
	{name: "prints errors without end", hangs: true, do: func(folder) (any, error) {
		for {
			write(2, "{\"@message\":\"so it goes\",\"@level\":\"error\"}\nand so on\n")
			time.Sleep(10 * time.Microsecond) // so that the host can run too
		}
	}},
	{name: "prints 1 MiB of errors, then works", do: func(folder) (any, error) {
		write(2, strings.Repeat("x", 1<<20))
		return nil, nil
	}},
	{name: "leaves it to a child in a new session", do: func(f folder) (any, error) {
		f.leaveChild(true)
		os.Exit(0)
		return nil, nil
	}},
	{name: "starts a child and works", do: func(f folder) (any, error) {
		f.leaveChild(false)
		return nil, nil
	}},
	{name: "works after a quarter of the time allowed", hangs: true, do: func(folder) (any, error) {
		time.Sleep(startPatience / 4)
		return nil, nil
	}},
	{name: "works after double the time allowed", hangs: true, says: startPatience.String(),
		do: func(folder) (any, error) {
			time.Sleep(2 * startPatience)
			return nil, nil
		}},
	{name: "has another cookie", do: func(folder) (any, error) {
		return nil, os.Setenv(wire.Handshake.MagicCookieKey, "another")
	}},
	{name: "speaks another protocol version", do: func(folder) (any, error) {
		if describes() {
			fmt.Println(`{"info":{"name":"forger"},"protocols":[3]}`)
			os.Exit(0)
		}
		plugin.Serve(&plugin.ServeConfig{HandshakeConfig: wire.Handshake, GRPCServer: plugin.DefaultGRPCServer,
			VersionedPlugins: map[int]plugin.PluginSet{3: wire.Plugins(
				wire.ArchService(fake.Provider{Name: forger}))[wire.ProtocolVersion]}})
		os.Exit(0)
		return nil, nil
	}},
	{name: "says that it cannot work", says: "there is no device", do: func(folder) (any, error) {
		return serveInstead(failing{fake.Provider{Name: forger}})
	}},
	{name: "has no name", says: "name: it is empty", do: func(folder) (any, error) {
		return serveInstead(nameless{fake.Provider{Name: forger}})
	}},
	{name: "provides nothing", says: "it provides no architecture and no executor",
		do: describeAs(`{"info":{"name":"forger"},"protocols":[2],"manifest":{"name":"forger"}}`)},
	{name: "describes itself in half a JSON text", do: describeAs(`{"info":{"name":"forger","apiVers`)},
	{name: "describes itself in 5 MiB", do: func(f folder) (any, error) {
		return describeAs(`{"info":{"name":"` + strings.Repeat("x", 5<<20) + `"}}`)(f)
	}},
	{name: "handshake: 1&#124;1", do: handshake("1|1")},
	{name: "handshake: of core version 2", do: handshake("2|1|unix|FOLDER/none|grpc|")},
	{name: "handshake: not a number", do: handshake("one|1|unix|FOLDER/none|grpc|")},
	{name: "handshake: net/rpc", do: handshake("1|2|unix|FOLDER/none|netrpc|")},
	{name: "handshake: an unknown network", do: handshake("1|2|pigeon|FOLDER/none|grpc|")},
	{name: "handshake: a socket that is not there", do: handshake("1|2|unix|FOLDER/none|grpc|")},
	{name: "handshake: a socket somewhere else", says: "outside of the folder",
		do: handshake("1|2|unix|/tmp/none|grpc|")},
	{name: "handshake: a certificate that is none", do: handshake("1|2|unix|FOLDER/none|grpc|" + strings.Repeat("AAAA",
		30))},
}

func describes() bool { return len(os.Args) > 1 && os.Args[1] == "describe" }

// printAnd prints to the standard output. A description then ends; otherwise the forger hangs with its output open.
func printAnd(text string) func(folder) (any, error) {
	return func(folder) (any, error) {
		write(1, text)
		if describes() {
			os.Exit(0)
		}
		for {
			time.Sleep(time.Hour)
		}
	}
}

func describeAs(text string) func(folder) (any, error) {
	return func(f folder) (any, error) {
		if !describes() {
			return nil, os.WriteFile(f.file(unchangedFile), nil, 0o600)
		}
		return printAnd(text)(f)
	}
}

func handshake(line string) func(folder) (any, error) {
	return func(f folder) (any, error) {
		if describes() {
			return nil, os.WriteFile(f.file(unchangedFile), nil, 0o600)
		}
		return printAnd(strings.Replace(line, "FOLDER", os.Getenv(plugin.EnvUnixSocketDir), 1) + "\n")(f)
	}
}

type failing struct{ fake.Provider }

func (failing) Health(context.Context) error { return errors.New("there is no device") }

type nameless struct{ fake.Provider }

func (n nameless) Manifest() arch.Manifest {
	m := n.Provider.Manifest()
	m.Name = ""
	return m
}

func serveInstead(p arch.Provider) (any, error) {
	if describes() {
		serve.Main(p)
	}
	serve.Serve(p)
	os.Exit(0)
	return nil, nil
}

// startPatience is the time limit of hosts whose plugin does not start.
const startPatience = 4 * time.Second

// TestFaultsAtTheStart makes every fault at a start and in a description.
func TestFaultsAtTheStart(t *testing.T) {
	leavesNothing(t)
	phases := []string{"describe", "start"}
	outcomes := make([][]string, len(startForgeries))
	var wg sync.WaitGroup
	few := make(chan struct{}, 8)
	for i, f := range startForgeries {
		outcomes[i] = make([]string, len(phases))
		for j, phase := range phases {
			wg.Go(func() {
				few <- struct{}{}
				defer func() { <-few }()
				t.Run(phase+"/"+f.name, func(t *testing.T) { outcomes[i][j] = startOutcome(t, phase, f) })
			})
		}
	}
	wg.Wait()
	var rows []string
	for i, f := range startForgeries {
		if slices.Contains(outcomes[i], "") {
			return // the test failed, or is to do a part only
		}
		rows = append(rows, f.name)
	}
	if !t.Failed() {
		verifyList(t, "Starts", phases, rows, func(row, column int) string { return outcomes[row][column] })
	}
}

func startOutcome(t *testing.T, phase string, f forgery) string {
	var o host.Options
	if f.hangs {
		o.StartTimeout = startPatience
	}
	b := newBench(t, forgerExternal, o)
	defer b.close(t)
	must.Do(t, b.arm(phase, f.name))
	begin := time.Now()
	listed := pluginsOf(t, b.host)[0]
	outcome, message := "answer", listed.Reason
	if listed.State != host.OK {
		outcome = string(listed.State)
		must.That(t, listed.Reason != "" && !strings.Contains(listed.Reason, "\n"), "the reason is %q", listed.Reason)
	}
	if phase == "start" {
		must.Need(t, listed.State == host.OK, "got %+v", listed)
		_, err := b.host.Open(t.Context(), arch.OpenRequest{Arch: forger})
		var e *host.PluginError
		switch {
		case errors.As(err, &e) && diag.KindOf(err) == diag.Plugin:
			outcome, message = string(e.Fault), err.Error()
			must.That(t, !strings.Contains(err.Error(), "\n") && strings.HasPrefix(err.Error(), "plugin "+listed.Name+": "),
				"%q is not a line about the plugin", err)
		case err != nil:
			t.Errorf("got %v", err)
		}
		starts := len(b.lines(startsFile))
		must.That(t, starts == 2, "started %d times, with the description", starts)
		t.Log(err)
	}
	must.That(t, outcome == "answer" || strings.Contains(message, f.says), "%q does not say %q", message, f.says)
	took := time.Since(begin)
	must.That(t, took <= 25*time.Second, "it took %v", took)
	if _, err := os.Stat(b.file(unchangedFile)); err == nil {
		outcome = "–"
	}
	t.Log(outcome, time.Since(begin).Round(time.Millisecond), listed.Reason)
	if outcome != "answer" && outcome != "–" {
		for _, pid := range b.lines(startsFile) {
			must.That(t, eventually(func() bool { return !lives(pid) }), "process %s lives on", pid)
		}
	}
	// The next start works.
	_ = b.arm("", "")
	if phase == "start" && !f.hangs {
		err := b.open(t.Context())
		must.That(t, err == nil, "afterwards: %v", err)
	}
	return outcome
}
