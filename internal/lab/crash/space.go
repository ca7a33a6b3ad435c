package crash

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/setpoint-dev/setpoint/internal/lab/crash/world"
)

// full are the points at which the disk is taken away; false: something was
// sent before.
var full = []struct {
	point  string
	before bool
}{
	{"before decision#1", true}, {"before claim#1", true}, {"after claim#1", true}, {"before started#1", true},
	{"after started#1", false}, {"sent#1", false}, {"before receipt#1", false},
}

// spaceCases fill the ledger's disk at a point, or let its files grow no more.
func spaceCases(ctx context.Context, p *planner) ([]Case, error) {
	var cases []Case
	for _, f := range full {
		if p.short && f.point != "before claim#1" {
			continue
		}
		if why := noMounts(ctx); why != "" {
			cases = append(cases, skippedCase(why)...)
		} else {
			cases = append(cases, scenario("full disk at "+f.point, episodes[0], func(ctx context.Context, r *run) Result {
				return r.filled(ctx, f.point, f.before)
			}))
		}
		cases = append(cases, scenario("file size limit at "+f.point, episodes[0], func(ctx context.Context, r *run) Result {
			return r.limited(ctx, f.point, f.before)
		}))
	}
	return cases, nil
}

// noMounts says why no disk of its own can be made; "" where it can.
func noMounts(ctx context.Context) string {
	for _, tool := range []string{"unshare", "nsenter", "mount"} {
		if _, err := exec.LookPath(tool); err != nil {
			return tool + " is not in PATH"
		}
	}
	out, err := exec.CommandContext(ctx, "unshare", "-m", "sh", "-c", "mount -t tmpfs -o size=64k none /mnt").CombinedOutput()
	if err != nil {
		return fmt.Sprintf("no mount namespace here (root makes one): %v: %s", err, strings.TrimSpace(string(out)))
	}
	return ""
}

// disk is a small file system that only those see who enter its namespace.
type disk struct {
	holder *exec.Cmd
	// path is the disk as this process sees it.
	path string
}

// mount moves the ledger to a disk of its own, of 1 MiB.
func (r *run) mount() (*disk, error) {
	const dir = "disk"
	if err := os.MkdirAll(r.Path(dir), 0o700); err != nil {
		return nil, err
	}
	config, err := os.ReadFile(r.Path(world.ConfigFile))
	if err != nil {
		return nil, err
	}
	text := strings.Replace(string(config), "path: "+world.LedgerFile, "path: "+dir+"/"+world.LedgerFile, 1)
	if err := os.WriteFile(r.Path(world.ConfigFile), []byte(text), 0o600); err != nil {
		return nil, err
	}
	script := `mount -t tmpfs -o size=1m none disk && cp -a setpoint.db* disk/ && echo ready && exec sleep 600`
	d := &disk{holder: exec.Command("unshare", "-m", "--propagation", "private", "sh", "-c", script)} //nolint:noctx // ended by unmount
	d.holder.Dir = r.Dir
	d.holder.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := d.holder.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := d.holder.Start(); err != nil {
		return nil, err
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		d.unmount()
		return nil, errors.Join(fmt.Errorf("make a small disk: %q", line), err)
	}
	pid := d.holder.Process.Pid
	d.path = fmt.Sprintf("/proc/%d/root%s", pid, r.Path(dir))
	// The working directory is looked up anew, inside.
	r.Enter = []string{"nsenter", "-t", fmt.Sprint(pid), "-m", "--", "sh", "-c", `cd "$0" && exec "$@"`, r.Dir}
	return d, nil
}

// unmount ends the namespace, and the disk with it.
func (d *disk) unmount() {
	_ = d.holder.Process.Kill() // It may be gone.
	_ = d.holder.Wait()         // It was killed.
}

// fill leaves no byte free.
func (d *disk) fill() error {
	f, err := os.Create(filepath.Join(d.path, "filler"))
	if err != nil {
		return err
	}
	block := make([]byte, 4096)
	for len(block) > 0 {
		if _, err = f.Write(block); err != nil {
			block = block[:len(block)/2]
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		return errors.Join(fmt.Errorf("the disk did not become full: %w", err), f.Close())
	}
	return f.Close()
}

func (d *disk) free() error { return os.Remove(filepath.Join(d.path, "filler")) }

// filled fills the disk while the agent stands at a point. It sends nothing
// without a durable claim and start; and a person is told, which needs no disk.
// With space again it goes on by itself.
func (r *run) filled(ctx context.Context, point string, before bool) Result {
	d, err := r.mount()
	if err != nil {
		return r.giveUp(err)
	}
	defer d.unmount()
	agent, err := r.Start(world.Rig{At: point, Do: "stop"})
	if err != nil {
		return r.giveUp(err)
	}
	r.result.Reached = r.stopped(ctx, agent)
	if err := d.fill(); err != nil {
		r.broke("%v", err)
	}
	sent := len(r.Actuator.Journal())
	agent.Signal(syscall.SIGCONT)
	r.toldOf(ctx, agent, "the disk was full")
	if n := len(r.Actuator.Journal()) - sent; before && n > 0 {
		r.broke("%d requests although the disk was full at %s", n, point)
	}
	if err := d.free(); err != nil {
		r.broke("%v", err)
	}
	r.settled(ctx, agent)
	return r.judge(ctx)
}

// limited lets no file of the process grow any more: SQLite reads the error as
// that of a failing disk, after which nobody knows what a later success means.
// The process writes no more; the next one goes on.
func (r *run) limited(ctx context.Context, point string, before bool) Result {
	agent, err := r.Start(world.Rig{At: point, Do: "stop"})
	if err != nil {
		return r.giveUp(err)
	}
	r.result.Reached = r.stopped(ctx, agent)
	out, err := exec.CommandContext(ctx, "prlimit", "--pid", fmt.Sprint(agent.PID()), "--fsize=0").CombinedOutput()
	if err != nil {
		r.broke("set the limit: %v: %s", err, out)
	}
	sent := len(r.Actuator.Journal())
	agent.Signal(syscall.SIGCONT)
	r.toldOf(ctx, agent, "no file could grow")
	if n := len(r.Actuator.Journal()) - sent; before && n > 0 {
		r.broke("%d requests although no file could grow at %s", n, point)
	}
	agent.Kill()
	r.settle(ctx)
	return r.judge(ctx)
}
