package lab

import (
	"context"

	"k8slab/lab/backup"
	"k8slab/lab/session"
)

// UndoDiff says how nodes differ from a backup: see backup.Compare.
func (l *Lab) UndoDiff(ctx context.Context, id string, names []string) (backup.Comparison, error) {
	return ask(ctx, l, access{}, func(ctx context.Context, s *session.Session) (backup.Comparison, error) {
		return backup.Compare(ctx, s, id, names)
	})
}

// Undo puts back what a comparison lists: see backup.Undo.
func (l *Lab) Undo(ctx context.Context, c backup.Comparison) ([]backup.Restored, error) {
	return ask(ctx, l, access{verb: "labctl undo restore", agreed: true}, func(ctx context.Context, s *session.Session) ([]backup.Restored, error) {
		return backup.Undo(ctx, s, c)
	})
}
