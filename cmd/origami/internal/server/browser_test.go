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

	"github.com/origami-gemm/origami/cmd/origami/internal/verb/reportcmd"
	"github.com/origami-gemm/origami/internal/testing/fakearch"
	"github.com/spf13/pflag"
)

// probe uses a page as a reader does, and writes down what it saw.
const probe = `(async () => {
  const seen = { faults: [] };
  addEventListener("error", (e) => seen.faults.push(e.message));
  const rest = (ms) => new Promise((done) => setTimeout(done, ms));
  const shown = (e) => e.getClientRects().length > 0;
  await rest(100);
  seen.drawn = document.documentElement.dataset.drawn;
  const check = (when) => {
    for (const f of [...document.querySelectorAll("figure.chart")].filter(shown)) {
      const svg = f.querySelector(".plot svg"), name = f.querySelector("figcaption strong").textContent;
      if (!svg) { seen.faults.push(when + ": not drawn: " + name); continue; }
      const label = document.getElementById(svg.getAttribute("aria-labelledby"));
      if (svg.getAttribute("role") !== "img" || !label || !label.textContent) seen.faults.push("no name: " + name);
      if (svg.querySelectorAll("path, circle, rect").length < 2) seen.faults.push("empty: " + name);
      const rows = f.querySelectorAll("details tbody tr").length;
      if (!rows && !/table of all problems/.test(f.textContent)) seen.faults.push("no table: " + name);
      seen.figures = (seen.figures || 0) + 1;
    }
    const all = document.documentElement;
    if (all.scrollWidth > all.clientWidth) seen.faults.push(when + ": too wide");
  };
  check("at first");
  for (const e of document.querySelectorAll("select, input, button, a[href], summary, [tabindex]")) {
    if (e.tabIndex > 0) seen.faults.push("the order of focus is not that of the page: " + e.outerHTML);
    const named = e.textContent.trim() || e.getAttribute("aria-label") || (e.labels && e.labels.length);
    if (!named) seen.faults.push("no name: " + e.outerHTML);
  }
  const select = document.querySelector(".choice select");
  seen.panels = select.options.length;
  select.value = select.options[1].value;
  select.dispatchEvent(new Event("change"));
  await rest(100);
  const panels = [...document.querySelectorAll(".panel")].filter(shown);
  if (panels.length !== 1 || panels[0].id !== select.value) seen.faults.push("the choice does not show its panel");
  check("after a choice");
  const slider = panels[0].querySelector(".whatif input"), output = panels[0].querySelector(".whatif output");
  seen.before = output.textContent;
  seen.beforeValue = slider.getAttribute("aria-valuetext");
  for (const place of PLACES) {
    slider.value = place;
    slider.dispatchEvent(new Event("input"));
    await rest(400);
  }
  seen.after = output.textContent;
  seen.afterValue = slider.getAttribute("aria-valuetext");
  document.body.dataset.probe = JSON.stringify(seen);
})();`

// browse opens an address in Chromium and returns what the probe saw.
func browse(t *testing.T, address string) (seen struct {
	Faults                                        []string
	Drawn, Before, After, BeforeValue, AfterValue string
	Figures, Panels                               int
}) {
	t.Helper()
	names := []string{"chromium", "chromium-browser", "google-chrome"}
	i := slices.IndexFunc(names, func(name string) bool { _, err := exec.LookPath(name); return err == nil })
	if i < 0 {
		t.Skip("there is no Chromium")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var dom, messages bytes.Buffer
	cmd := exec.CommandContext(ctx, names[i], "--headless", "--no-sandbox", "--disable-gpu", "--window-size=500,900",
		"--user-data-dir="+t.TempDir(), "--virtual-time-budget=10000", "--enable-logging=stderr", "--dump-dom", address)
	cmd.Stdout, cmd.Stderr = &dom, &messages
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		t.Skipf("Chromium does not run here: %v", err)
	}
	for line := range strings.Lines(messages.String()) {
		if strings.Contains(line, "CONSOLE") {
			t.Error(line)
		}
	}
	found := regexp.MustCompile(`data-probe="([^"]*)"`).FindSubmatch(dom.Bytes())
	if found == nil {
		t.Fatalf("the page was not looked at: %.2000s %s", messages.Bytes(), dom.Bytes()[max(0, dom.Len()-500):])
	}
	if err := json.Unmarshal([]byte(html.UnescapeString(string(found[1]))), &seen); err != nil {
		t.Fatal(err)
	}
	for _, fault := range seen.Faults {
		t.Error(fault)
	}
	return seen
}

// The page of the server works in a browser: figures, choices, and sliders that ask.
func TestServedPageInBrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts a browser")
	}
	s := serverOf(t, fakearch.Toy{}, Options{Local: true})
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/probe.js":
			w.Header().Set("Content-Type", "text/javascript")
			_, _ = w.Write([]byte(strings.Replace(probe, "PLACES", "[1.5]", 1)))
		case "/":
			page := httptest.NewRecorder()
			s.ServeHTTP(page, r)
			w.Header().Set("Content-Security-Policy", page.Header().Get("Content-Security-Policy"))
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write(append(page.Body.Bytes(), `<script src="/probe.js"></script>`...))
		default:
			s.ServeHTTP(w, r)
		}
	}))
	defer site.Close()
	seen := browse(t, site.URL+"/?arch=toy1,toy1@big&"+shape256)
	if seen.Drawn != "true" || seen.Panels != 2 || seen.Figures < 6 {
		t.Errorf("%+v", seen)
	}
	if seen.After == seen.Before || strings.Contains(seen.After, "–") || seen.AfterValue == seen.BeforeValue {
		t.Errorf("the slider does nothing: %+v", seen)
	}
}

// The file works in a browser, without a server.
func TestFileInBrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts a browser")
	}
	s := serverOf(t, fakearch.Toy{}, Options{})
	f, err := s.factoryFor(map[string]string{"arch": "toy1,toy1@big"}, s.pageParams)
	if err != nil {
		t.Fatal(err)
	}
	o := &reportcmd.Options{Factory: f}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.Register(flags)
	if err := setFlags(flags, map[string]string{"m": "512", "n": "256", "k": "1024"}); err != nil {
		t.Fatal(err)
	}
	p, _, err := reportcmd.Build(t.Context(), o, func(int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := p.File(&text); err != nil {
		t.Fatal(err)
	}
	text.WriteString("<script>" + strings.Replace(probe, "PLACES", "[0]", 1) + "</script>")
	name := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(name, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	seen := browse(t, "file://"+name)
	if seen.Drawn != "true" || seen.Panels != 2 || seen.Figures < 6 {
		t.Errorf("%+v", seen)
	}
	if seen.After == seen.Before || strings.Contains(seen.After, "–") || seen.AfterValue == seen.BeforeValue {
		t.Errorf("the slider does nothing: %+v", seen)
	}
}
