;;; codekv.el --- Private code completion as ghost text  -*- lexical-binding: t; -*-

;; Version: 0.1.0
;; Package-Requires: ((emacs "28.1"))
;; SPDX-License-Identifier: Apache-2.0

;;; Commentary:

;; A client of its own beside eglot or lsp-mode, so that it takes no language server's
;; place.  (add-hook 'prog-mode-hook #'codekv-mode)

;;; Code:

(require 'jsonrpc)
(require 'cl-lib)
(require 'subr-x)
(require 'url-util)

(defvar codekv-mode)

(defgroup codekv nil "Private code completion." :group 'completion)

(defcustom codekv-command '("codekv" "serve")
  "Command line of the server."
  :type '(repeat string))

(defcustom codekv-settings nil
  "Options of the server as a nested plist, in the nesting of codekv.toml."
  :type 'sexp)

(defcustom codekv-delay 0.05
  "Seconds without a key before the server is asked."
  :type 'number)

(defface codekv-ghost '((t :inherit shadow)) "Face of a suggestion.")

(defvar codekv--connection nil "The connection, shared by all buffers.")
(defvar codekv--encoding "utf-16" "What the server counts columns in.")
(defvar-local codekv--version 0)
(defvar-local codekv--tick nil "The modification tick that the server knows.")
(defvar-local codekv--overlay nil)
(defvar-local codekv--timer nil)

(defun codekv--uri ()
  "The buffer's address."
  (concat "file://" (url-hexify-string (or buffer-file-name (buffer-name))
                                       url-path-allowed-chars)))

(defun codekv--units (text)
  "Length of TEXT in the server's units."
  (pcase codekv--encoding
    ("utf-32" (length text))
    ("utf-8" (string-bytes text))
    (_ (/ (length (encode-coding-string text 'utf-16le)) 2))))

(defun codekv--position ()
  "Where point is, as the protocol counts."
  (list :line (1- (line-number-at-pos nil t))
        :character (codekv--units
                    (buffer-substring-no-properties (line-beginning-position) (point)))))

(defun codekv--point (character)
  "Buffer position of column CHARACTER in point's line."
  (save-excursion
    (beginning-of-line)
    (let ((start (point)))
      (while (and (not (eolp))
                  (< (codekv--units (buffer-substring-no-properties start (point)))
                     character))
        (forward-char))
      (point))))

(defun codekv--start ()
  "Start the server, and tell who asks."
  (setq codekv--connection
        (jsonrpc-process-connection
         :name "codekv"
         :events-buffer-scrollback-size 0
         :on-shutdown (lambda (_) (setq codekv--connection nil))
         :process (lambda ()
                    (make-process :name "codekv" :command codekv-command
                                  :connection-type 'pipe :coding 'utf-8-emacs-unix
                                  :noquery t :stderr (get-buffer-create "*codekv*")))))
  (let* ((root (expand-file-name default-directory))
         (answer (jsonrpc-request
                  codekv--connection :initialize
                  (list :processId (emacs-pid) :rootUri (concat "file://" root)
                        :clientInfo '(:name "emacs")
                        :initializationOptions (or codekv-settings (make-hash-table))
                        :capabilities
                        '(:general (:positionEncodings ["utf-32" "utf-16"])
                          :textDocument
                          (:inlineCompletion (:dynamicRegistration :json-false)))))))
    (setq codekv--encoding
          (or (plist-get (plist-get answer :capabilities) :positionEncoding) "utf-16"))
    (jsonrpc-notify codekv--connection :initialized (make-hash-table))))

(defun codekv--live ()
  "The connection, started if needed."
  (unless (and codekv--connection (jsonrpc-running-p codekv--connection))
    (codekv--start))
  codekv--connection)

(defun codekv--text ()
  "The whole buffer's text."
  (save-restriction
    (widen)
    (buffer-substring-no-properties (point-min) (point-max))))

(defun codekv--sync ()
  "Bring the server's copy of the buffer up to date."
  (let ((tick (buffer-chars-modified-tick)) (live (codekv--live)))
    (cond
     ((null codekv--tick)
      (jsonrpc-notify
       live :textDocument/didOpen
       (list :textDocument
             (list :uri (codekv--uri) :version codekv--version :text (codekv--text)
                   :languageId (string-remove-suffix
                                "-mode" (replace-regexp-in-string
                                         "-ts-mode$" "-mode" (symbol-name major-mode)))))))
     ((/= tick codekv--tick)
      (jsonrpc-notify
       live :textDocument/didChange
       (list :textDocument (list :uri (codekv--uri) :version (cl-incf codekv--version))
             :contentChanges (vector (list :text (codekv--text)))))))
    (setq codekv--tick tick)))

(defun codekv--hide ()
  "Remove what is shown."
  (when codekv--overlay
    (delete-overlay codekv--overlay)
    (setq codekv--overlay nil)))

(defun codekv--draw (rest width item)
  "Show REST of ITEM at point; WIDTH characters after point belong to it."
  (let* ((tail (buffer-substring-no-properties (point) (+ (point) width)))
         (ghost (propertize (if (string-suffix-p tail rest)
                                (string-remove-suffix tail rest)
                              rest)
                            'face 'codekv-ghost)))
    (codekv--hide)
    (unless (string-empty-p ghost)
      (put-text-property 0 1 'cursor t ghost)
      (setq codekv--overlay (make-overlay (point) (point) nil t t))
      (overlay-put codekv--overlay 'after-string ghost)
      (overlay-put codekv--overlay 'codekv (list rest width item)))))

(defun codekv--show (item)
  "Show ITEM if it fits the line as it is."
  (let* ((range (plist-get item :range))
         (start (codekv--point (plist-get (plist-get range :start) :character)))
         (end (codekv--point (plist-get (plist-get range :end) :character)))
         (text (replace-regexp-in-string "\r\n?" "\n" (plist-get item :insertText)))
         (typed (buffer-substring-no-properties start (point))))
    (when (string-prefix-p typed text)
      (codekv--draw (substring text (length typed)) (- end (point)) item)
      (jsonrpc-notify (codekv--live) :textDocument/didShowCompletion
                      (list :item item)))))

(defun codekv--ask (kind)
  "Ask for KIND (1: by hand, 2: automatic); what is late is dropped."
  (codekv--sync)
  (let ((buffer (current-buffer)) (tick codekv--tick) (point (point)))
    (jsonrpc-async-request
     (codekv--live) :textDocument/inlineCompletion
     (list :textDocument (list :uri (codekv--uri)) :position (codekv--position)
           :context (list :triggerKind kind))
     :timeout 60 :error-fn #'ignore :timeout-fn #'ignore
     :success-fn
     (lambda (answer)
       (when (buffer-live-p buffer)
         (with-current-buffer buffer
           (when (and codekv-mode (= (point) point)
                      (= tick (buffer-chars-modified-tick)))
             (codekv--hide)
             (when-let* ((items (plist-get answer :items))
                         (item (and (> (length items) 0) (aref items 0))))
               (codekv--show item)))))))))

(defun codekv--after-command ()
  "Hide what no longer fits, and ask after a change."
  (let ((is-own (memq this-command '(codekv-accept codekv-accept-word
                                     codekv-accept-line))))
    (unless (or is-own (null codekv--overlay)
                (and (= (point) (overlay-start codekv--overlay))
                     (eql codekv--tick (buffer-chars-modified-tick))))
      (codekv--hide))
    (when (and (not (eql codekv--tick (buffer-chars-modified-tick)))
               (null codekv--overlay))
      (codekv--later))))

(defun codekv--later ()
  "Ask when no key has come for a while."
  (when codekv--timer (cancel-timer codekv--timer))
  (let ((buffer (current-buffer)))
    (setq codekv--timer
          (run-with-idle-timer
           codekv-delay nil
           (lambda ()
             (when (buffer-live-p buffer)
               (with-current-buffer buffer
                 (when codekv-mode (codekv--ask 2)))))))))

(defun codekv--take (length-of)
  "Take as much of the suggestion as LENGTH-OF says of its text."
  (pcase-let* ((`(,rest ,width ,item) (overlay-get codekv--overlay 'codekv))
               (count (funcall length-of rest))
               (tail (buffer-substring-no-properties (point) (+ (point) width)))
               (left (substring rest count)))
    (codekv--hide)
    (undo-boundary)
    (if (not (member left (list "" tail)))
        (let ((text (plist-get item :insertText)))
          (insert (substring rest 0 count))
          (codekv--sync)
          (codekv--draw left width item)
          (jsonrpc-notify
           (codekv--live) :textDocument/didPartiallyAcceptCompletion
           (list :item item
                 :acceptedLength (/ (length (encode-coding-string
                                             (string-remove-suffix left text)
                                             'utf-16le))
                                    2))))
      (delete-region (point) (+ (point) width))
      (insert rest)
      (when-let ((command (plist-get item :command)))
        (jsonrpc-async-request
         (codekv--live) :workspace/executeCommand
         (list :command (plist-get command :command)
               :arguments (plist-get command :arguments))
         :success-fn #'ignore :error-fn #'ignore)))))

(defun codekv-accept ()
  "Take the whole suggestion."
  (interactive)
  (codekv--take #'length))

(defun codekv-accept-word ()
  "Take the next word of the suggestion."
  (interactive)
  (codekv--take (lambda (rest) (string-match "\\`\\s-*\\(?:\\w\\|\\s_\\)*.?" rest)
                  (max 1 (match-end 0)))))

(defun codekv-accept-line ()
  "Take the suggestion up to its next line break."
  (interactive)
  (codekv--take (lambda (rest) (or (string-match "\n" rest 1) (length rest)))))

(defun codekv-dismiss ()
  "Hide the suggestion."
  (interactive)
  (codekv--hide))

(defun codekv-request ()
  "Ask now."
  (interactive)
  (codekv--ask 1))

(defun codekv-pause ()
  "Stop answering."
  (interactive)
  (jsonrpc-request (codekv--live) :workspace/executeCommand '(:command "codekv.pause")))

(defun codekv-resume ()
  "Answer again."
  (interactive)
  (jsonrpc-request (codekv--live) :workspace/executeCommand '(:command "codekv.resume")))

(defun codekv--key (command)
  "A binding of COMMAND that is there only while something is shown."
  `(menu-item "" ,command :filter ,(lambda (it) (and codekv--overlay it))))

(defvar codekv-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "TAB") (codekv--key #'codekv-accept))
    (define-key map (kbd "M-<right>") (codekv--key #'codekv-accept-word))
    (define-key map (kbd "C-M-<right>") (codekv--key #'codekv-accept-line))
    (define-key map (kbd "C-g") (codekv--key #'codekv-dismiss))
    (define-key map (kbd "M-\\") #'codekv-request)
    map)
  "Keys of `codekv-mode'.")

(defun codekv--close ()
  "Tell the server that the buffer is gone."
  (codekv--hide)
  (when (and codekv--tick codekv--connection)
    (jsonrpc-notify codekv--connection :textDocument/didClose
                    (list :textDocument (list :uri (codekv--uri)))))
  (setq codekv--tick nil))

;;;###autoload
(define-minor-mode codekv-mode
  "Ghost text from a model on your own processor."
  :lighter " codekv"
  (if codekv-mode
      (progn
        (codekv--sync)
        (add-hook 'post-command-hook #'codekv--after-command nil t)
        (add-hook 'kill-buffer-hook #'codekv--close nil t))
    (remove-hook 'post-command-hook #'codekv--after-command t)
    (remove-hook 'kill-buffer-hook #'codekv--close t)
    (codekv--close)))

(provide 'codekv)
;;; codekv.el ends here
