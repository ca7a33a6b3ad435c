package command_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/execute/command"
	"github.com/setpoint-dev/setpoint/internal/execute/executetest"
	"github.com/setpoint-dev/setpoint/internal/propose"
)

// Only a listed file that nobody else can write is run, and a refusal says
// what to do.
func TestAllowList(t *testing.T) {
	must := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	cases := map[string]struct {
		reason string
		// make prepares the folder, in which ok.sh is a good program, and returns
		// the list and the program.
		make func(t *testing.T, dir string) (allow, program string)
		want string
	}{
		"Same":     {"the listed program", func(_ *testing.T, dir string) (string, string) { return dir + "/ok.sh", dir + "/ok.sh" }, ""},
		"Unclean":  {"however it is written", func(_ *testing.T, dir string) (string, string) { return dir + "/./ok.sh", dir + "/x/../ok.sh" }, ""},
		"Relative": {"a relative one is below the working directory of whoever read it", func(t *testing.T, dir string) (string, string) { t.Chdir(dir); return "ok.sh", dir + "/ok.sh" }, ""},
		"Bare":     {"nothing is looked up in PATH", func(t *testing.T, dir string) (string, string) { t.Chdir(dir); return "/bin/sh", "sh" }, "/sh is not in executors.command.allow"},
		"Other":    {"another one beside it", func(t *testing.T, dir string) (string, string) { return script(t, dir, "b.sh", ":"), dir + "/ok.sh" }, "ok.sh is not in executors.command.allow of setpoint.yaml, which allows "},
		"None":     {"an empty list", func(_ *testing.T, dir string) (string, string) { return "", dir + "/ok.sh" }, "which allows no program"},
		"Up":       {"a way up from a listed one", func(_ *testing.T, dir string) (string, string) { return dir + "/x", dir + "/x/../ok.sh" }, "is not in executors.command.allow"},
		"Folder":   {"a listed folder lists nothing in it", func(_ *testing.T, dir string) (string, string) { return dir, dir + "/ok.sh" }, "is not in executors.command.allow"},
		"IsFolder": {"nor can it be run", func(_ *testing.T, dir string) (string, string) { return dir, dir }, "is a folder: name the file to run"},
		"Absent":   {"a file that is not there", func(_ *testing.T, dir string) (string, string) { return dir + "/no.sh", dir + "/no.sh" }, "cannot be found"},
		"NotExecutable": {"a text", func(t *testing.T, dir string) (string, string) {
			must(t, os.Chmod(dir+"/ok.sh", 0o644))
			return dir + "/ok.sh", dir + "/ok.sh"
		}, "is not executable: chmod +x "},
		"World": {"everybody can write it", func(t *testing.T, dir string) (string, string) {
			must(t, os.Chmod(dir+"/ok.sh", 0o757))
			return dir + "/ok.sh", dir + "/ok.sh"
		}, "can be written by others than its owner (mode 0757): chmod go-w "},
		"Group": {"a group can", func(t *testing.T, dir string) (string, string) {
			must(t, os.Chmod(dir+"/ok.sh", 0o775))
			return dir + "/ok.sh", dir + "/ok.sh"
		}, "can be written by others than its owner (mode 0775): chmod go-w "},
		"WorldFolder": {"everybody can put another file in its place", func(t *testing.T, dir string) (string, string) {
			must(t, os.Chmod(dir, 0o777))
			return dir + "/ok.sh", dir + "/ok.sh"
		}, "can be written by everybody: chmod o-w "},
		"StickyFolder": {"unless only owners may take files away", func(t *testing.T, dir string) (string, string) {
			must(t, os.Chmod(dir, 0o777|os.ModeSticky))
			return dir + "/ok.sh", dir + "/ok.sh"
		}, ""},
		"Link": {"a link is the program that it leads to", func(t *testing.T, dir string) (string, string) {
			must(t, os.Symlink("ok.sh", dir+"/link"))
			return dir + "/link", dir + "/link"
		}, ""},
		"LinkNotListed": {"by the name that was listed", func(t *testing.T, dir string) (string, string) {
			must(t, os.Symlink("ok.sh", dir+"/link"))
			return dir + "/ok.sh", dir + "/link"
		}, "is not in executors.command.allow"},
		"LinkToWritable": {"and is held to the same", func(t *testing.T, dir string) (string, string) {
			must(t, os.Chmod(script(t, dir, "b.sh", ":"), 0o777))
			must(t, os.Symlink("b.sh", dir+"/link"))
			return dir + "/link", dir + "/link"
		}, "can be written by others than its owner"},
		"LinkToWritableFolder": {"with its folder", func(t *testing.T, dir string) (string, string) {
			must(t, os.Mkdir(dir+"/open", 0o755))
			script(t, dir+"/open", "b.sh", ":")
			must(t, os.Chmod(dir+"/open", 0o777))
			must(t, os.Symlink("open/b.sh", dir+"/link"))
			return dir + "/link", dir + "/link"
		}, "can be written by everybody"},
		"LinkNowhere": {"a link to nothing", func(t *testing.T, dir string) (string, string) {
			must(t, os.Symlink("gone", dir+"/link"))
			return dir + "/link", dir + "/link"
		}, "cannot be found"},
		"LinkCircle": {"a link to itself", func(t *testing.T, dir string) (string, string) {
			must(t, os.Symlink("link", dir+"/link"))
			return dir + "/link", dir + "/link"
		}, "cannot be found"},
		"Pipe": {"a pipe would hang", func(t *testing.T, dir string) (string, string) {
			must(t, syscall.Mkfifo(dir+"/pipe", 0o755))
			return dir + "/pipe", dir + "/pipe"
		}, "is no regular file"},
		"Device": {"a device is no program", func(*testing.T, string) (string, string) { return "/dev/null", "/dev/null" }, "is no regular file"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := program(t, ":")
			script(t, b.dir, "ok.sh", "touch ran")
			allow, path := tc.make(t, b.dir)
			b.options.Allow, b.action.Target.Argv = nil, []string{path}
			if allow != "" {
				b.options.Allow = []string{allow}
			}
			r, err := b.execute(t, nil, nil)
			if tc.want == "" {
				if err != nil || r.Effect != execute.Applied || b.read(t, "ran") != "" {
					t.Errorf("%s: %+v, %v, want it to run", tc.reason, r, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) || r.Effect != execute.Failed {
				t.Errorf("%s: %+v, %v, want %q", tc.reason, r, err, tc.want)
			}
			b.absent(t, "ran")
		})
	}
}

// A link that is turned elsewhere after the program was found changes nothing
// for this run, and is looked at again for the next.
func TestLinkIsTurnedAtTheLastMoment(t *testing.T) {
	b := program(t, ":")
	script(t, b.dir, "good.sh", "touch good")
	bad := script(t, b.dir, "bad.sh", "touch canary")
	if err := os.Chmod(bad, 0o777); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(b.dir, "link")
	if err := os.Symlink("good.sh", link); err != nil {
		t.Fatal(err)
	}
	b.options.Allow, b.action.Target.Argv = []string{link}, []string{link}
	r, err := b.execute(t, nil, func() error {
		if err := os.Remove(link); err != nil {
			return err
		}
		return os.Symlink("bad.sh", link)
	})
	if err != nil || r.Effect != execute.Applied {
		t.Fatal(r, err)
	}
	b.read(t, "good")
	if r, err := b.execute(t, nil, nil); err == nil || r.Effect != execute.Failed {
		t.Errorf("the turned link is run: %+v", r)
	}
	b.absent(t, "canary")
}

func TestRefusals(t *testing.T) {
	if _, err := command.New(command.Options{}); err == nil {
		t.Error("no clock, and no error")
	}
	b := program(t, "touch canary").texts("x")
	for name, change := range map[string]func(*bench){
		"Option":    func(*bench) {},
		"NoTimeout": func(b *bench) { b.action.Timeout = 0 },
		"NoArgv":    func(b *bench) { b.action.Target.Argv = nil },
		"Program":   func(b *bench) { b.action.Target.Argv = []string{"${parameters.x}"} },
		"Undeclared": func(b *bench) {
			b.action.Target.Argv = append(b.action.Target.Argv[:1:1], "${parameters.y}")
		},
	} {
		changed := b
		change(&changed)
		value := "--fine"
		if name != "Option" {
			value = "fine"
		}
		if r, err := changed.execute(t, propose.Parameters{"x": value}, nil); err == nil || r.Effect != execute.Failed || r.Detail == "" {
			t.Errorf("%s: %+v, %v, want a refusal", name, r, err)
		}
	}
	b.absent(t, "canary")
}

// FuzzFill: what is no placeholder stays, what is one becomes exactly the value
// or nothing at all.
func FuzzFill(f *testing.F) {
	f.Add("${parameters.x}", "-rf")
	f.Add("--n=${parameters.x}", "6")
	f.Add("${parameters.x}", "${parameters.x}")
	f.Add("${parameters.x}", "a\x00b")
	f.Fuzz(func(t *testing.T, element, value string) {
		got, err := command.Fill([]string{"/p", element}, propose.Parameters{"x": value})
		switch {
		case element != "${parameters.x}":
			if err == nil && got[1] != element {
				t.Errorf("%q became %q", element, got[1])
			}
		case strings.HasPrefix(value, "-") || strings.ContainsRune(value, 0):
			if err == nil {
				t.Errorf("%q was let through", value)
			}
		case err != nil || got[1] != value || got[0] != "/p" || len(got) != 2:
			t.Errorf("%q became %q, %v", value, got, err)
		}
	})
}

func BenchmarkExecute(b *testing.B) {
	x := program(b, ":")
	e := x.executor(b)
	p := executetest.Permit(b, x.action, nil, now)
	for b.Loop() {
		if r, err := e.Execute(context.Background(), p, nil); err != nil || r.Effect != execute.Applied {
			b.Fatal(r, err)
		}
	}
}
