package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"k8slab/lab/gitserver"
)

func (a *app) gitserverCommand() *cobra.Command {
	c := gitserver.Config{Dir: "/git", Errors: a.stderr}
	addr, passwordFile := ":8080", ""
	cmd := &cobra.Command{
		Use:   "gitserver",
		Short: "Serve the Git repository of the lab's add-ons",
		Long: `Serve a Git repository over HTTP, and create it if it does not exist:
  /lab.git      open for reading; a push needs the user git and the password
  GET /healthz  200 if the repository can be read`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if c.Password, err = readPassword(passwordFile); err != nil {
				return err
			}
			handler, err := gitserver.New(cmd.Context(), c)
			if err != nil {
				return err
			}
			return serve(cmd.Context(), addr, handler)
		},
	}
	cmd.Flags().StringVar(&c.Dir, "dir", c.Dir, "directory that has the repository")
	cmd.Flags().StringVar(&addr, "listen", addr, "address to serve on")
	cmd.Flags().StringVar(&passwordFile, "password-file", "", "file with the password for pushing")
	_ = cmd.MarkFlagRequired("password-file")
	return cmd
}

func readPassword(file string) (string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	password := strings.TrimRight(string(data), "\r\n")
	if password == "" {
		return "", fmt.Errorf("%s is empty: it has to have the password for pushing", file)
	}
	return password, nil
}
