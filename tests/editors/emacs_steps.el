;;; emacs_steps.el --- What the test does in Emacs  -*- lexical-binding: t; -*-

;; $CODEKV_CMD: the server's command line, a JSON list.  Prints one JSON object.

(require 'codekv)
(require 'json)

(defun steps-wait (condition)
  "Wait for CONDITION and give what it gives."
  (let ((end (+ (float-time) 60)) found)
    (while (not (or (setq found (funcall condition)) (> (float-time) end)))
      (accept-process-output nil 0.05))
    (or found (error "Waited too long; the buffer is %S" (buffer-string)))))

(defun steps-ghost ()
  "What is shown."
  (and codekv--overlay
       (substring-no-properties (overlay-get codekv--overlay 'after-string))))

(defun steps-is-ready ()
  "Whether the server is."
  (equal (plist-get (jsonrpc-request codekv--connection :codekv/status
                                     (make-hash-table))
                    :state)
         "ready"))

(defvar steps-seen nil)

(defun steps-note (name)
  "Keep the buffer and what is shown as NAME."
  (push (cons name (vector (buffer-string) (steps-ghost))) steps-seen))

(defun steps-ask (text back)
  "Put TEXT into the buffer, go BACK characters, ask, and wait for ghost text."
  (erase-buffer)
  (insert text)
  (backward-char back)
  (codekv--ask 2)
  (steps-wait #'steps-ghost))

(setq codekv-command (append (json-parse-string (getenv "CODEKV_CMD")) nil))
(with-temp-buffer
  (setq buffer-file-name (expand-file-name "t.py"))
  (codekv-mode 1)
  (steps-wait #'steps-is-ready)
  (steps-ask "s = '𝛑😀'; größe = " 0)
  (steps-note 'shown)
  (codekv-accept-word)
  (steps-note 'word)
  (codekv-accept)
  (steps-note 'all)
  (steps-ask "print()" 1)
  (codekv-accept)
  (steps-note 'bracket)
  (steps-ask "if x:" 0)
  (codekv-accept-line)
  (steps-note 'line)
  (codekv-dismiss)
  (steps-note 'dismissed)
  (set-buffer-modified-p nil)
  (princ (json-encode steps-seen)))

;;; emacs_steps.el ends here
