package server

import (
	"bytes"
	"context"
	"encoding/json"
	"html"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/origami-gemm/origami/internal/testing/fakearch"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/site/page"
)

// probe uses a page as a reader does, and writes down what it saw. STEPS do what a page is opened for.
const probe = `(async () => {
  const seen = { faults: [], headings: [] };
  addEventListener("error", (e) => seen.faults.push(e.message));
  addEventListener("unhandledrejection", (e) => seen.faults.push(String(e.reason)));
  const main = document.querySelector("main"), rest = (ms) => new Promise((done) => setTimeout(done, ms));
  const until = async (f, what) => {
    for (let i = 0; i < 400; i++) { if (f()) return; await rest(20); }
    seen.faults.push("never: " + what);
  };
  const check = async (when) => {
    await until(() => [...main.querySelectorAll("figure")].every((f) => f.querySelector("svg")), when + ": drawn");
    if (document.querySelector("img") || document.documentElement.dataset.hit) seen.faults.push(when + ": markup");
    const all = document.documentElement;
    if (all.scrollWidth > all.clientWidth) seen.faults.push(when + ": too wide");
    for (const f of main.querySelectorAll("figure")) {
      const svg = f.querySelector("svg");
      const named = svg && svg.getAttribute("role") === "img" && svg.getAttribute("aria-label");
      if (!named) seen.faults.push(when + ": not drawn");
      else if (svg.querySelectorAll("path, circle, rect, polyline").length < 2) seen.faults.push(when + ": empty");
      if (!f.querySelector("details tbody tr")) seen.faults.push(when + ": no table");
    }
    for (const e of document.querySelectorAll("select, input:not([type=hidden]), button, a[href], summary")) {
      const named = e.textContent.trim() || e.getAttribute("aria-label") || (e.labels && e.labels.length);
      if (!named || e.tabIndex > 0) seen.faults.push(when + ": " + e.outerHTML);
    }
  };
  try {
    await until(() => main.querySelector("section"), "an answer");
    await rest(200);
    STEPS
  } catch (e) { seen.faults.push(String(e.stack)); }
  seen.headings = [...main.querySelectorAll("h1, h2")].map((e) => e.textContent);
  document.body.dataset.probe = JSON.stringify(seen);
})();`

// seen is what the probe saw.
type seen struct {
	Faults, Headings []string
	Before, After    string
}

// browse opens an address in Chromium and returns what the probe saw.
func browse(t *testing.T, address string) (saw seen) {
	t.Helper()
	names := []string{"chromium", "chromium-browser", "google-chrome"}
	i := slices.IndexFunc(names, func(name string) bool { _, err := exec.LookPath(name); return err == nil })
	if i < 0 {
		t.Skip("there is no Chromium")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var dom, messages bytes.Buffer
	cmd := exec.CommandContext(ctx, names[i], "--headless", "--no-sandbox", "--disable-gpu", "--window-size=500,900",
		"--user-data-dir="+t.TempDir(), "--virtual-time-budget=60000", "--enable-logging=stderr", "--dump-dom", address)
	cmd.Stdout, cmd.Stderr = &dom, &messages
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		t.Skipf("Chromium does not run here: %v", err)
	}
	for line := range strings.Lines(messages.String()) {
		must.That(t, !strings.Contains(line, "CONSOLE") || strings.Contains(line, "Failed to load resource"), "%v", line)
	}
	found := regexp.MustCompile(`data-probe="([^"]*)"`).FindSubmatch(dom.Bytes())
	if found == nil {
		t.Fatalf("the probe did not end: %.3000s", messages.String())
	}
	must.Do(t, json.Unmarshal([]byte(html.UnescapeString(string(found[1]))), &saw))
	for _, fault := range saw.Faults {
		t.Error(fault)
	}
	return saw
}

// opened serves the page with a probe, and opens it at a question.
func opened(t *testing.T, question, steps string) seen {
	t.Helper()
	s := serverOf(t, fakearch.Toy{}, Options{Local: true})
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/probe.js":
			w.Header().Set("Content-Type", "text/javascript")
			_, _ = w.Write([]byte(strings.Replace(probe, "STEPS", steps, 1)))
		case "/":
			home := httptest.NewRecorder()
			s.ServeHTTP(home, r)
			w.Header().Set("Content-Security-Policy", home.Header().Get("Content-Security-Policy"))
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write(append(home.Body.Bytes(), `<script src="/probe.js"></script>`...))
		default:
			s.ServeHTTP(w, r)
		}
	}))
	defer site.Close()
	return browse(t, site.URL+"/"+question)
}

// file opens a page with answers, without a server.
func file(t *testing.T, answers []page.Answer, steps string) seen {
	t.Helper()
	var text bytes.Buffer
	must.Do(t, page.Write(&text, markup, map[string]string{"small": "Acme Small " + markup}, answers))
	// The policy of a file lets no other script run: the probe is not the page's.
	name := filepath.Join(t.TempDir(), "page.html")
	unlocked := regexp.MustCompile(`<meta http-equiv[^>]*>`).ReplaceAll(text.Bytes(), nil)
	unlocked = append(unlocked, "<script>"+strings.Replace(probe, "STEPS", steps, 1)+"</script>"...)
	must.Do(t, os.WriteFile(name, unlocked, 0o600))
	return browse(t, "file://"+name)
}

// A page draws what it is asked, and what a reader changes is in its address.
func TestPageInBrowser(t *testing.T) {
	saw := opened(t, "?arch=toy1&"+shape256, `
    await until(() => main.querySelector(".roofs"), "the roofline");
    await check("a pick");
    seen.before = document.querySelector("h1").textContent;
    document.querySelector("[name=m]").value = "64";
    document.querySelector("form button.ask").click();
    await until(() => location.search.includes("m=64") && !main.hasAttribute("aria-busy"), "another question");
    await check("another pick");
    history.back();
    await until(() => location.search.includes("m=256") && !main.hasAttribute("aria-busy"), "the question before");
    seen.after = document.querySelector("h1").textContent;`)
	must.That(t, saw.Before != "" && saw.Before == saw.After && slices.Contains(saw.Headings, "Under the roofs"),
		"%+v", saw)
	saw = opened(t, "?arch=toy1,toy1@big&m=64:1024&n=256,512&k=256,256", `
    await until(() => main.querySelectorAll(".panels figure").length === 2, "a panel for each layer");
    await check("panels");
    main.querySelector("[name=view][value=ratio]").click();
    await rest(200);
    if (!location.hash.includes("view=ratio")) seen.faults.push("the view is not in the address");
    await check("ratios");`)
	must.That(t, slices.Contains(saw.Headings, "By M"), "%+v", saw)
	saw = opened(t, "?arch=toy9&"+shape256, `await check("an error");`)
	must.That(t, len(saw.Headings) == 1 && saw.Headings[0] == `Unknown architecture "toy9".`, "%+v", saw)
}

// What a question says is text on the page, in each of its parameters.
func TestMarkupOnThePage(t *testing.T) {
	opened(t, "?arch=toy1&"+shape256, `
    const spec = await (await fetch("openapi.json")).json(), names = new Set();
    for (const path of Object.values(spec.paths)) for (const p of path.get.parameters || []) names.add(p.name);
    const questions = ["arch=toy1&m=256&n=256&k=256", "arch=toy1,toy1@big&m=64,256&n=256&k=256"];
    for (const base of questions) for (const name of names) {
      const q = new URLSearchParams(base);
      q.set(name, '`+markup+`');
      history.pushState(null, "", "?" + q);
      dispatchEvent(new PopStateEvent("popstate"));
      await until(() => !main.hasAttribute("aria-busy"), name);
      await check(name + " with " + base);
    }`)
}

// So it is in a file, which has the answers of all addresses to all parameters in it, and the answers of the commands
// whose labels and names are markup.
func TestFileInBrowser(t *testing.T) {
	s := serverOf(t, fakearch.Toy{}, Options{})
	answers := reflected(t, s)
	file(t, answers, `await check("refused");`)
	of := func(verb, query string) page.Answer {
		body := get(s, "/api/v1/"+verb+"?"+query).Body.Bytes()
		return page.Answer{Verb: verb, Command: markup, JSON: bytes.ReplaceAll(body, []byte(`"plain"`), encoded(t, markup))}
	}
	one := "arch=toy1&" + shape256
	saw := file(t, []page.Answer{of("select", one), of("explain", one), of("roofline", one),
		of("compare", "arch=toy1,toy1@big&"+shape256), of("map", "arch=toy1&m=64:256&n=64:256&k=64")},
		`await check("answers");
    seen.before = document.querySelectorAll("figure svg [tabindex], svg[tabindex]").length + "";`)
	for _, want := range []string{"Side by side", "Under the roofs", "Rate over M and N"} {
		must.That(t, slices.Contains(saw.Headings, want), "no %q in %q", want, saw.Headings)
	}
}

func encoded(t *testing.T, text string) []byte {
	t.Helper()
	b := must.Get(json.Marshal(text))(t)
	return b
}
