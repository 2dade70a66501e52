package node

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/kevinburke/ssh_config"
)

// HostConfig is what ~/.ssh/config says of a name.
type HostConfig struct {
	Host         string // the name itself, if nothing else is said
	User         string
	Port         int // 0 if nothing is said
	IdentityFile string
	Jump         string // [USER@]HOST[:PORT], commas between several
}

// maxHops ends a ring of jump hosts.
const maxHops = 8

// SSHConfig reads what ~/.ssh/config says of a name. A name that it does not have is no error.
func SSHConfig(name string) (HostConfig, error) {
	file := expand("~/.ssh/config")
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return HostConfig{Host: name}, nil
	}
	if err != nil {
		return HostConfig{}, err
	}
	c, err := ssh_config.DecodeBytes(content)
	if err != nil {
		return HostConfig{}, fmt.Errorf("read %s: %w; next: name the machine as USER@HOST:PORT", file, err)
	}
	h, err := lookUp(c, name, maxHops)
	if err != nil {
		return HostConfig{}, fmt.Errorf("%s: %s: %w", file, name, err)
	}
	return h, nil
}

func lookUp(c *ssh_config.Config, name string, hops int) (HostConfig, error) {
	if hops == 0 {
		return HostConfig{}, fmt.Errorf("more than %d jump hosts", maxHops)
	}
	var errs []error
	get := func(key string) string {
		value, err := c.Get(name, key)
		errs = append(errs, err)
		return value
	}
	h := HostConfig{User: get("User"), IdentityFile: get("IdentityFile")}
	h.Host = cmp.Or(strings.NewReplacer("%h", name, "%%", "%").Replace(get("HostName")), name)
	if port := get("Port"); port != "" {
		number, err := strconv.Atoi(port)
		h.Port = number
		errs = append(errs, err)
	}
	h.IdentityFile = strings.NewReplacer("%d", "~", "%h", h.Host, "%n", name, "%r", h.User, "%%", "%").Replace(h.IdentityFile)
	if strings.EqualFold(h.IdentityFile, "none") {
		h.IdentityFile = ""
	}
	jump, err := jumpsOf(c, get("ProxyJump"), hops)
	h.Jump = jump
	return h, errors.Join(append(errs, err)...)
}

// jumpsOf replaces the names of a ProxyJump by what the file says of them.
func jumpsOf(c *ssh_config.Config, jump string, hops int) (string, error) {
	if jump == "" || strings.EqualFold(jump, "none") {
		return "", nil
	}
	var all []string
	for i, text := range strings.Split(jump, ",") {
		user, host, port := splitHop(text)
		h, err := lookUp(c, host, hops-1)
		if err != nil {
			return "", err
		}
		if i == 0 && h.Jump != "" { // ssh reaches the other hops through the first
			all = append(all, h.Jump)
		}
		hop := h.Host
		if user = cmp.Or(user, h.User); user != "" {
			hop = user + "@" + hop
		}
		if port == "" && h.Port != 0 {
			port = strconv.Itoa(h.Port)
		}
		if port != "" {
			hop = strings.TrimSuffix(hop, h.Host) + net.JoinHostPort(h.Host, port)
		}
		all = append(all, hop)
	}
	return strings.Join(all, ","), nil
}

// splitHop takes [USER@]HOST[:PORT] apart; an IPv6 address with a port is in brackets.
func splitHop(text string) (user, host, port string) {
	text = strings.TrimPrefix(strings.TrimSpace(text), "ssh://")
	if i := strings.LastIndex(text, "@"); i >= 0 {
		user, text = text[:i], text[i+1:]
	}
	if host, port, err := net.SplitHostPort(text); err == nil {
		return user, host, port
	}
	return user, strings.Trim(text, "[]"), ""
}
