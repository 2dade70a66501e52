package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

// textVariable has the text of the pods that prove a volume: one writes it, another one reads it.
const textVariable = "K8SLAB_TEXT"

// volumeCommand is a command of such a pod. Its error is the last line of the pod's log, which is where the kubelet takes a pod's last words.
func volumeCommand(verb, short string, do func(file string, text []byte) error) *cobra.Command {
	return &cobra.Command{
		Use: verb + " FILE", Short: short, Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			text := os.Getenv(textVariable)
			if text == "" {
				return errors.New(textVariable + " is not set")
			}
			return do(args[0], []byte(text))
		},
	}
}

func writeText(file string, text []byte) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Sync(), f.Close())
}

func readText(file string, text []byte) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	got, err := io.ReadAll(io.LimitReader(f, int64(len(text))+1))
	if err != nil {
		return err
	}
	if !bytes.Equal(got, text) {
		return fmt.Errorf("%s has %d bytes that are not the %d that were written", file, len(got), len(text))
	}
	return nil
}
