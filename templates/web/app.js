// Every page works without this, and without the script of charts before it.
for (const field of document.querySelectorAll('[data-submits]'))
  field.addEventListener('change', () => field.form.requestSubmit());
// Reloads the page while something is being sent, unless someone is typing. Only once, and not
// after a link was followed or a form sent: a reload would cancel that if it takes long.
const again = document.querySelector('[data-reloads]');
let timer;
const reload = () => {
  const typing = 'textarea:focus, details[open] > textarea, details[open] > form > textarea';
  if (document.querySelector(typing)) timer = setTimeout(reload, 2500);
  else location.replace(again.href);
};
if (again) timer = setTimeout(reload, 2500);
addEventListener('beforeunload', () => clearTimeout(timer));

// A decision is made once: its card says so at once, also while the server is still working.
for (const form of document.querySelectorAll('form.decides'))
  form.addEventListener('submit', ({ submitter }) => {
    // After the form was read, because a button that is inert is not sent.
    setTimeout(() => {
      form.inert = true;
      form.querySelector('[role=status]').textContent =
        submitter?.value === 'skip' ? 'Skipping it …' : 'Approving it …';
    });
  });
// The page may be shown again as it was left.
addEventListener('pageshow', ({ persisted }) => {
  if (persisted) location.reload();
});
