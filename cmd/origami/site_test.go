package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/origami-gemm/origami/cmd/origami/internal/builtins"
	"github.com/origami-gemm/origami/cmd/origami/internal/cli"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// site is the folder that `make site` wrote. `make site-test` names it.
func site(t *testing.T) string {
	t.Helper()
	folder := os.Getenv("ORIGAMI_SITE")
	if folder == "" {
		t.Skip("make site-test runs it")
	}
	return folder
}

// asked asks the module of the site under Node.
func asked(t *testing.T, folder string, paths ...string) (bodies []string) {
	t.Helper()
	args := []string{filepath.Join("..", "..", "site", "ask.mjs"), filepath.Join(filepath.Dir(folder), "origami.wasm"),
		filepath.Join(folder, "wasm_exec.js")}
	out := must.Get(exec.CommandContext(t.Context(), "node", append(args, paths...)...).Output())(t)
	for line := range bytes.Lines(out) {
		var a struct{ Body string }
		must.Do(t, json.Unmarshal(line, &a))
		bodies = append(bodies, a.Body)
	}
	must.Need(t, len(bodies) == len(paths), "%d answers to %d questions", len(bodies), len(paths))
	return bodies
}

// What the site answers is what the command answers, byte for byte.
func TestSiteAnswersAsTheCommand(t *testing.T) {
	folder := site(t)
	questions := []struct{ path, args string }{
		{"select?arch=h200&m=4096&n=4096&k=4096", "select --arch h200 -m 4096 -n 4096 -k 4096"},
		{"select?arch=h200:clock=1.5GHz,num_sms=66&m=300&n=50257&k=1024",
			"select --arch h200:clock=1.5GHz,num_sms=66 -m 300 -n 50257 -k 1024"},
		{"explain?arch=mi300x&m=4096&n=512&k=8192&dtype=bf16",
			"explain --arch mi300x -m 4096 -n 512 -k 8192 --dtype bf16"},
		{"roofline?arch=rtx4090&m=4096&n=4096&k=4096", "roofline --arch rtx4090 -m 4096 -n 4096 -k 4096"},
		{"compare?arch=h100,mi300x,b200&m=1&n=7168&k=2048&dtype=fp8&trans_b=true",
			"compare --arch h100,mi300x,b200 -m 1 -n 7168 -k 2048 --dtype fp8 --trans-b"},
		{"compare?arch=h200,rtx4090,mi300x&m=4096&n=4096&k=4096&dtype=bf16",
			"compare --arch h200,rtx4090,mi300x -m 4096 -n 4096 -k 4096 --dtype bf16"},
	}
	var paths []string
	for _, q := range questions {
		paths = append(paths, "/api/v1/"+q.path)
	}
	answers := asked(t, folder, paths...)
	for i, q := range questions {
		var out bytes.Buffer
		code := cli.Main(cli.System{
			Args:    append([]string{"--in-process", "--json"}, strings.Fields(q.args)...),
			Streams: iostreams.Plain(strings.NewReader(""), &out, io.Discard),
			Getenv:  func(string) string { return "" }, Connect: builtins.Connect,
		})
		got, want := answers[i], out.String()
		must.That(t, code == 0 && got == want, "%s: exit code %d\n%.2000s\n%.2000s", q.path, code, got, want)
	}
}

// What a reader loads before the first answer of their own stays small. A method that is reached by its name, as
// templates and interfaces do, brings others along.
func TestSiteIsSmall(t *testing.T) {
	info := must.Get(os.Stat(filepath.Join(site(t), "origami.wasm.gz")))(t)
	if info.Size() > 6_200_000 { // 900 kB are published times, which correct answers, and 350 kB the commands
		t.Errorf("the module has %d bytes", info.Size())
	}
}

// browser is a session with the WebDriver of Chromium.
type browser struct {
	t       *testing.T
	session string
}

// driver starts the WebDriver of Chromium, and returns its address.
func driver(t *testing.T) string {
	t.Helper()
	program, err := exec.LookPath("chromedriver")
	if err != nil {
		t.Skip("there is no chromedriver")
	}
	// Browsers are told to end after the context of the test, by this program.
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program, "--port=0")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	must.Do(t, err)
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, port, ok := strings.Cut(lines.Text(), "successfully on port "); ok {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return "http://127.0.0.1:" + strings.Trim(port, ".")
		}
	}
	t.Fatal("chromedriver says no port")
	return ""
}

// newBrowser starts a browser that knows nothing of any other.
func newBrowser(t *testing.T, driver string) *browser {
	t.Helper()
	b := &browser{t: t, session: driver}
	var started struct{ SessionID string }
	b.do("/session", map[string]any{"capabilities": map[string]any{"alwaysMatch": map[string]any{
		"goog:chromeOptions": map[string]any{"args": []string{"--headless=new", "--no-sandbox", "--disable-gpu"}},
		"timeouts":           map[string]any{"script": 60_000, "pageLoad": 300_000},
	}}}, &started)
	b.session += "/session/" + started.SessionID
	t.Cleanup(func() {
		r := must.Get(http.NewRequest(http.MethodDelete, b.session, nil))(t)
		if reply, err := http.DefaultClient.Do(r); err == nil {
			_ = reply.Body.Close()
		}
	})
	return b
}

// do sends a command of WebDriver, and decodes its value.
func (b *browser) do(command string, body, value any) {
	b.t.Helper()
	text := must.Get(json.Marshal(body))(b.t)
	r := must.Get(http.Post(b.session+command, "application/json", bytes.NewReader(text)))(b.t)
	defer func() { _ = r.Body.Close() }()
	var reply struct{ Value json.RawMessage }
	if err := json.NewDecoder(r.Body).Decode(&reply); err != nil || r.StatusCode != http.StatusOK {
		b.t.Fatalf("%s: %s %v %.500s", command, r.Status, err, reply.Value)
	}
	if value != nil {
		err := json.Unmarshal(reply.Value, value)
		must.Need(b.t, err == nil, "%s: %v", reply.Value, err)
	}
}

// eval runs a function body of JavaScript, which may wait, and returns what it returns.
func (b *browser) eval(script string) (result string) {
	b.t.Helper()
	b.do("/execute/async", map[string]any{"args": []any{}, "script": "const done = arguments[0]; (async () => { " +
		script + " })().then((v) => done(String(v)), (e) => done('failed: ' + e))"}, &result)
	return result
}

func (b *browser) open(address string) {
	b.t.Helper()
	b.do("/url", map[string]any{"url": address}, nil)
}

// keys types into what has the focus.
func (b *browser) keys(text string) {
	b.t.Helper()
	var actions []any
	for _, r := range text {
		for _, kind := range []string{"keyDown", "keyUp"} {
			actions = append(actions, map[string]any{"type": kind, "value": string(r)})
		}
	}
	keyboard := map[string]any{"type": "key", "id": "keys", "actions": actions}
	b.do("/actions", map[string]any{"actions": []any{keyboard}}, nil)
}

// until waits for a condition, in JavaScript, for so long as a machine with other work may need.
func (b *browser) until(condition string) {
	b.t.Helper()
	for range 3000 {
		if b.eval("return "+condition) == "true" {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	b.t.Fatalf("it never came to %s: %s %s", condition, b.eval("return location"),
		b.eval("return document.body.innerText"))
}

// shot keeps a picture of the page in the folder of ORIGAMI_SHOTS, for people to look at.
func (b *browser) shot(name string) {
	folder := os.Getenv("ORIGAMI_SHOTS")
	if folder == "" {
		return
	}
	b.t.Helper()
	var reply struct{ Data []byte }
	b.do("/goog/cdp/execute", map[string]any{"cmd": "Page.captureScreenshot",
		"params": map[string]any{"captureBeyondViewport": false}}, &reply)
	must.Do(b.t, os.WriteFile(filepath.Join(folder, name+".png"), reply.Data, 0o600))
}

const (
	tab   = "\uE004"
	enter = "\uE007"
)

// A reader opens the site, asks with the keyboard, follows a shared link, and goes on without a network. Nothing is
// wider than the window, and axe finds no serious fault.
func TestSiteInBrowser(t *testing.T) {
	folder := site(t)
	axe := must.Get(os.ReadFile(os.Getenv("ORIGAMI_AXE")))(t)
	// Under a folder, as Pages has it.
	server := httptest.NewServer(http.StripPrefix("/origami", http.FileServer(http.Dir(folder))))
	t.Cleanup(server.Close)
	home := server.URL + "/origami/"
	fits := func(b *browser, name string) {
		t.Helper()
		for _, width := range []int{400, 900, 1600} {
			b.do("/goog/cdp/execute", map[string]any{"cmd": "Emulation.setDeviceMetricsOverride", "params": map[string]any{
				"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": false}}, nil)
			got := b.eval("const e = document.documentElement; return e.scrollWidth <= e.clientWidth ? '' : e.scrollWidth")
			must.That(t, got == "", "%s at %d pixels is %s wide", name, width, got)
			b.shot(name + "-" + strconv.Itoa(width))
		}
		// axe needs eval, which the pages' policy forbids to their scripts, not to the driver's.
		var faults string
		b.do("/execute/async", map[string]any{"args": []any{}, "script": string(axe) + `;
			const done = arguments[0];
			axe.run(document, { resultTypes: ["violations"] }).then((r) => done(r.violations
				.filter((v) => v.impact === "serious" || v.impact === "critical")
				.map((v) => [v.id, v.help, ...v.nodes.slice(0, 3).map((n) => n.html.slice(0, 200))].join(" | ")).join("\n")),
				(e) => done("axe: " + e))`}, &faults)
		must.That(t, faults == "", "%s: %s", name, faults)
	}

	chromium := driver(t)
	b := newBrowser(t, chromium)
	b.open(home)
	b.until("document.querySelector('.verdict h1') !== null")
	fits(b, "opening")
	b.until("navigator.serviceWorker.controller !== null")

	// The fields follow the links; Enter in a field asks.
	b.open(home)
	b.until("navigator.serviceWorker.controller !== null && document.querySelector('[name=m]') !== null")
	const focused = "const e = document.activeElement; return e.getAttribute('aria-label') || e.textContent"
	for _, want := range []string{"Skip to the answer", "origami", "Documentation", "API", "Source",
		"Remove NVIDIA H200×", "Add a device"} {
		b.keys(tab)
		got := b.eval(focused)
		must.That(t, got == want, "the tab key stops at %q, not at %q", got, want)
	}
	b.keys(tab)
	if got := b.eval("return document.activeElement.name"); got != "m" {
		t.Errorf("the stop of the tab key behind the devices is %q", got)
	}
	b.eval("document.activeElement.select()")
	begun := time.Now()
	b.keys("128" + enter)
	b.until("location.search.includes('m=128') && document.querySelector('.eyebrow').textContent.includes('128 × 4096')")
	t.Logf("the first answer that is not kept took %.1f s", time.Since(begun).Seconds())
	b.shot("answer")
	const query = `fetch("api/v1/select?arch=mi300x&m=1024&n=1024&k=1024")`
	if got := b.eval("return (await (await " + query + ").json()).arch"); got != "gfx942" {
		t.Errorf("JSON is of %q", got)
	}
	begun = time.Now()
	b.eval("return (await (await " + query + ").json()).arch")
	t.Logf("select as JSON took %.2f s", time.Since(begun).Seconds())

	for _, page := range []string{"docs/", "docs/report/", "docs/model-pipelined/", "docs/reference/"} {
		b.open(home + page)
		fits(b, strings.ReplaceAll(strings.Trim(page, "/"), "/", "-"))
		for _, foreign := range strings.Fields(b.eval("return performance.getEntriesByType('resource')" +
			".map((e) => e.name).filter((n) => !n.startsWith(location.origin) && !n.startsWith('data:')).join(' ')")) {
			t.Errorf("%s loads %s", page, foreign)
		}
	}

	// What was visited is kept a moment later.
	b.until("(await caches.match('" + home + "docs/report/')) !== undefined")

	// Another reader has the link only.
	second := newBrowser(t, chromium)
	shared := home + "?arch=h200,mi300x&m=2048&n=2048&k=2048&dtype=bf16&trans_b=true"
	begun = time.Now()
	second.open(shared)
	second.until("document.querySelector('.ways .name')?.textContent.includes('H200')")
	t.Logf("a shared link in a new browser took %.1f s", time.Since(begun).Seconds())
	if got := second.eval("const of = (name) => document.querySelector(`[name=${name}]`);" +
		"return of('m').value + of('dtype').value + of('trans_b').checked"); got != "2048bf16true" {
		t.Errorf("the form has %q", got)
	}
	fits(second, "compare")

	// Without a network, links, forms and an opened page work.
	server.CloseClientConnections()
	server.Close()
	second.open(home)
	second.until("document.querySelector('.verdict h1') !== null")
	second.open(home + "?arch=rtx4090&m=512&n=512&k=512")
	second.until("document.querySelector('.eyebrow')?.textContent.includes('512 × 512 × 512')")

	// So do the pages of the documentation that were visited, with their style.
	b.open(home + "docs/report/")
	got := b.eval("return document.querySelector('h1').textContent + ': ' + document.styleSheets.length")
	must.That(t, strings.HasPrefix(got, "Pages") && !strings.HasSuffix(got, ": 0"), "offline, a visited page is %q", got)
}
